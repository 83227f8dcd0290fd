"""The selector's tensors, as SGLang 0.5.23 ``models/dflash.py`` loads them: name -> shape."""

from typing import Any

from drafters.model.tensor_shapes import Shape


def head_tensors(config: dict[str, Any]) -> dict[str, Shape]:
    rank, vocab = config["dflash_config"]["selector_rank"], config["vocab_size"]
    return {
        "candidate_selector.predecessor_codebook": (vocab, rank),
        "candidate_selector.successor_codebook": (vocab, rank),
        "candidate_selector.hidden_projection.weight": (rank, config["hidden_size"]),
    }

"""The tensors of DSpark's two heads, as SGLang 0.5.23 ``models/dspark.py`` loads them: name -> shape."""

from typing import Any

from drafters.model.tensor_shapes import Shape


def head_tensors(config: dict[str, Any]) -> dict[str, Shape]:
    hidden, vocab, rank = config["hidden_size"], config["vocab_size"], config["markov_rank"]
    shapes: dict[str, Shape] = {
        "markov_head.markov_w1.weight": (vocab, rank),
        "markov_head.markov_w2.weight": (vocab, rank),
    }
    if config["markov_head_type"] == "gated":
        shapes |= {"markov_head.gate_proj.weight": (rank, hidden + rank), "markov_head.gate_proj.bias": (rank,)}
    if config["markov_head_type"] == "rnn":
        shapes["markov_head.joint_proj.weight"] = (3 * rank, 2 * rank + hidden)
        shapes["markov_head.joint_proj.bias"] = (3 * rank,)
    if config.get("enable_confidence_head", True):
        width = hidden + rank if config["confidence_head_with_markov"] else hidden
        shapes |= {"confidence_head.proj.weight": (1, width), "confidence_head.proj.bias": (1,)}
    return shapes

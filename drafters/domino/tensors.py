"""The tensors of Domino's correction, as SGLang 0.5.23 ``models/dflash.py`` loads them: name -> shape."""

from typing import Any

from drafters.model.tensor_shapes import Shape
from sglang_specbench.checkpoint_kind import setting


def head_tensors(config: dict[str, Any]) -> dict[str, Shape]:
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    gru, bottleneck = setting(config, "gru_hidden_dim"), setting(config, "emb_dim")
    return {
        "prefix_gru.weight_ih_l0": (3 * gru, hidden),
        "prefix_gru.weight_hh_l0": (3 * gru, gru),
        "embed_proj.0.weight": (bottleneck, hidden + gru),
        "embed_proj.2.weight": (vocab, bottleneck),
    }

"""The tensors that SGLang 0.5.23 loads for a drafter: name -> shape, worked out from config.json alone.

Here the backbone's; a head's stand in its arm's folder (``tensors.head_tensors``). Written from SGLang's loaders
(``models/dflash.py``, ``models/lilicorr.py``, ``models/dspark.py``), not from our modules, so that it can find a fault
in either. SGLang itself compares names for the heads of LiLiCorr and Domino only.
"""

import math
from collections.abc import Callable
from typing import Any

from drafters.model.registry import submodule
from sglang_specbench.checkpoint_kind import kind, setting

Shape = tuple[int, ...]


def expected(config: dict[str, Any]) -> dict[str, Shape]:
    """Every tensor of the checkpoint; ``KeyError`` or ``TypeError`` when config.json lacks a size."""
    return _backbone(config) | _head(kind(config))(config)


def head_parameters(config: dict[str, Any]) -> int:
    """Numbers that the arm's head adds to the backbone (0 for DFlash)."""
    return sum(math.prod(shape) for shape in _head(kind(config))(config).values())


def _head(checkpoint: str) -> Callable[[dict[str, Any]], dict[str, Shape]]:
    """``head_tensors`` of the arm's folder; no head for what no arm loads."""
    if not checkpoint:
        return lambda _config: {}
    found: Callable[[dict[str, Any]], dict[str, Shape]] = submodule(checkpoint, "tensors").head_tensors
    return found


def _backbone(config: dict[str, Any]) -> dict[str, Shape]:
    hidden, inner, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    layer: dict[str, Shape] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (queries, hidden),
        "self_attn.k_proj.weight": (keys, hidden),
        "self_attn.v_proj.weight": (keys, hidden),
        "self_attn.o_proj.weight": (hidden, queries),
        "self_attn.q_norm.weight": (size,),
        "self_attn.k_norm.weight": (size,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
        **_conv(config, hidden),
    }
    captured = len(setting(config, "target_layer_ids"))
    shapes: dict[str, Shape] = {
        "fc.weight": (hidden, captured * hidden),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
    }
    for index in range(config["num_hidden_layers"]):
        shapes |= {f"layers.{index}.{name}": shape for name, shape in layer.items()}
    return shapes


def _conv(config: dict[str, Any], hidden: int) -> dict[str, Shape]:
    nested = config.get("dflash_config", {})
    taps, group = nested.get("conv_kernel_size", 0), nested.get("conv_group_size", 0)
    if not (taps and group):
        return {}
    shapes = {"base_kernel": (2, taps, hidden), "kernel_projection.weight": (2 * taps * hidden // group, hidden)}
    return {f"{side}.{name}": shape for side in ("attention_conv", "mlp_conv") for name, shape in shapes.items()}

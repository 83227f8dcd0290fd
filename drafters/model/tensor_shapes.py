"""The tensors that SGLang 0.5.23 loads for a drafter: name -> shape, worked out from config.json alone.

Written from SGLang's loaders (``models/dflash.py``, ``models/lilicorr.py``, ``models/dspark.py``), not from our
modules, so that it can find a fault in either. SGLang itself compares names for the heads of LiLiCorr and Domino only.

Shapes: H hidden, V vocabulary, m captured target layers, I intermediate, T taps, r rank, G GRU width, E bottleneck,
h/d/f LiLiCorr hidden/factor/MLP width, K candidates, B block with its anchor.
"""

import math
from typing import Any

Shape = tuple[int, ...]
DSPARK = ("Qwen3DSparkModel", "DSparkDraftModel")


def kind(config: dict[str, Any]) -> str:
    """Which loader reads the checkpoint: dflash, dflash2, domino, dspark or lilicorr; "" when none does."""
    architecture = (config.get("architectures") or [""])[0]
    if architecture == "DFlashDraftModel":
        return "domino" if setting(config, "projector_type") == "domino" else "dflash"
    if architecture in DSPARK:
        return "dspark"
    return {"DFlash2DraftModel": "dflash2", "LiLiCorrDraftModel": "lilicorr"}.get(architecture, "")


def setting(config: dict[str, Any], name: str) -> Any:
    """``name`` from ``dflash_config`` first, then from the top level, as SGLang's parser reads it; None if absent."""
    return config.get("dflash_config", {}).get(name, config.get(name))


def expected(config: dict[str, Any]) -> dict[str, Shape]:
    """Every tensor of the checkpoint; ``KeyError`` or ``TypeError`` when config.json lacks a size."""
    head = {"dflash2": _selector, "domino": _domino, "dspark": _dspark, "lilicorr": _lilicorr}
    shapes = _backbone(config)
    if kind(config) in head:
        shapes |= head[kind(config)](config)
    return shapes


def head_parameters(config: dict[str, Any]) -> int:
    """Numbers that the arm's head adds to the backbone (0 for DFlash)."""
    backbone = _backbone(config)
    return sum(math.prod(shape) for name, shape in expected(config).items() if name not in backbone)


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


def _selector(config: dict[str, Any]) -> dict[str, Shape]:
    rank, vocab = config["dflash_config"]["selector_rank"], config["vocab_size"]
    return {
        "candidate_selector.predecessor_codebook": (vocab, rank),
        "candidate_selector.successor_codebook": (vocab, rank),
        "candidate_selector.hidden_projection.weight": (rank, config["hidden_size"]),
    }


def _domino(config: dict[str, Any]) -> dict[str, Shape]:
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    gru, bottleneck = setting(config, "gru_hidden_dim"), setting(config, "emb_dim")
    return {
        "prefix_gru.weight_ih_l0": (3 * gru, hidden),
        "prefix_gru.weight_hh_l0": (3 * gru, gru),
        "embed_proj.0.weight": (bottleneck, hidden + gru),
        "embed_proj.2.weight": (vocab, bottleneck),
    }


def _dspark(config: dict[str, Any]) -> dict[str, Shape]:
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


def _lilicorr(config: dict[str, Any]) -> dict[str, Shape]:
    nested, width, block = config["dflash_config"], config["hidden_size"], setting(config, "block_size")
    h = nested["lilicorr_hidden_size"] or width
    d, f = nested["lilicorr_factor_dim"], int(h * nested["lilicorr_mlp_ratio"])
    heads = nested["lilicorr_num_heads"]
    shapes: dict[str, Shape] = {
        "feature_norm.weight": (5,),
        "feature_norm.bias": (5,),
        "slot_embedding": (1, 1, block - 1, 1, h),
        "rank_embedding": (1, 1, 1, nested["lilicorr_candidate_topk"], h),
        "relative_slot_bias": (heads, 2 * block - 1),
        "same_slot_bias": (heads,),
        "output_norm.weight": (h,),
        "anchor_norm.weight": (h,),
    }
    linears = {
        "pass_hidden_proj": (h, width),
        "context_proj": (h, width),
        "feature_mlp.up_proj": (h, 5),
        "feature_mlp.down_proj": (h, h),
        "factor_input_proj": (h, 3 * h),
        **dict.fromkeys(("out_head", "in_head", "anchor_out_head"), (d, h)),
    }
    if h != width:
        linears["token_proj"] = (h, width)
    for index in range(nested["lilicorr_num_layers"]):
        at = f"layers.{index}"
        shapes |= {f"{at}.attn_norm.weight": (h,), f"{at}.mlp_norm.weight": (h,)}
        shapes |= {f"{at}.attn.in_proj_weight": (3 * h, h), f"{at}.attn.in_proj_bias": (3 * h,)}
        linears |= {f"{at}.attn.out_proj": (h, h), f"{at}.mlp.up_proj": (f, h), f"{at}.mlp.down_proj": (h, f)}
    for name, (rows, columns) in linears.items():
        shapes |= {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}
    return {f"lilicorr.{name}": shape for name, shape in shapes.items()}

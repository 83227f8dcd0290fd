"""The lattice's tensors, as SGLang 0.5.23 ``models/lilicorr.py`` loads them: name -> shape.

Shapes: h/d/f hidden, factor and MLP width; K candidates; B block with its anchor.
"""

from typing import Any

from drafters.model.tensor_shapes import Shape
from sglang_specbench.checkpoint_kind import setting


def head_tensors(config: dict[str, Any]) -> dict[str, Shape]:
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

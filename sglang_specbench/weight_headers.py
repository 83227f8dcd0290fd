"""Do the weights of a model fit its config.json: told from the headers of its safetensors files, no weight is read.

A file of the right name with a few numbers in it is a model to whoever only looks for files; a server finds out after
minutes of loading, or never, because SGLang leaves what it does not find as it was drawn.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sglang_specbench.checkpoint import read_config, tensor_shapes
from sglang_specbench.checkpoint_kind import kind

# architectures whose tensors have these names and these shapes; of others only the layers are counted
PLAIN = ("Qwen3ForCausalLM", "Qwen2ForCausalLM", "LlamaForCausalLM", "MistralForCausalLM")
_LAYER = re.compile(r"(?:[a-z_]*model\.)*layers\.(\d+)\.")  # not those of a head, such as LiLiCorr's
_PLACE = re.compile(r"(?:[a-z_]*model\.)*(?:layers\.\d+\.)?")


def faults(folder: Path) -> list[str]:
    """What does not fit, at most one line for absent layers and one for each kind of tensor; [] where all does."""
    config, shapes = read_config(folder / "config.json"), tensor_shapes(folder)
    inner = config.get("text_config")
    sizes = inner if isinstance(inner, dict) else config
    return [*_absent(sizes, shapes), *(_unlike(sizes, shapes) if _is_plain(config) else ())]


def _is_plain(config: Mapping[str, Any]) -> bool:
    known = (config.get("architectures") or [""])[0] in PLAIN or bool(kind(config))
    return known and "quantization_config" not in config  # packed weights have shapes of their own


def _absent(sizes: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    seen = {int(found[1]) for name in shapes if (found := _LAYER.match(name))}
    layers = sizes.get("num_hidden_layers", 0)
    lacking = [str(layer) for layer in range(layers) if layer not in seen]
    if lacking:
        yield f"no tensor of layer {lacking[0]} ({len(lacking)} of {layers} layers are absent)"


def _unlike(sizes: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    for suffix, wanted in _expected(sizes).items():
        odd = [(n, s) for n, s in shapes.items() if _PLACE.sub("", n, count=1) == suffix and s != wanted]
        if odd:
            name, shape = odd[0]
            more = f" ({len(odd)} such tensors)" if len(odd) > 1 else ""
            yield f"{name}: {list(shape)}, config.json means {list(wanted)}{more}"


def _expected(sizes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, heads, inside = sizes["hidden_size"], sizes.get("num_attention_heads"), sizes.get("intermediate_size")
    found: dict[str, tuple[int, ...]] = {
        "embed_tokens.weight": (sizes["vocab_size"], hidden),
        "lm_head.weight": (sizes["vocab_size"], hidden),
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
    }
    if heads:
        width = sizes.get("head_dim") or hidden // heads
        queries, keys = heads * width, (sizes.get("num_key_value_heads") or heads) * width
        found |= {
            "self_attn.q_proj.weight": (queries, hidden),
            "self_attn.k_proj.weight": (keys, hidden),
            "self_attn.v_proj.weight": (keys, hidden),
            "self_attn.o_proj.weight": (hidden, queries),
        }
    if inside:
        found |= {f"mlp.{name}_proj.weight": (inside, hidden) for name in ("gate", "up")}
        found["mlp.down_proj.weight"] = (hidden, inside)
    return found

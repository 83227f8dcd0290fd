"""The config.json of a drafter saved by speculators 0.9.0, as SGLang 0.5.23 reads it.

Its sizes are nested in ``transformer_layer_config``; layer ids count the embedding's output as 0 (``hidden_states``
indices), so they are one more than SGLang's, which name the decoder layer.
"""

from collections.abc import Mapping
from typing import Any

from sglang_specbench.errors import UserError

_ARCHITECTURES = {"dflash": "DFlashDraftModel", "dflash2": "DFlash2DraftModel", "dspark": "Qwen3DSparkModel"}
_HEADS = {"dflash2": ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")}


def is_speculators(config: Mapping[str, Any]) -> bool:
    return "speculators_model_type" in config or "speculators_config" in config


def from_speculators(config: Mapping[str, Any], where: str, of_target: Mapping[str, Any]) -> dict[str, Any]:
    """As SGLang reads it, with the keys ``of_target``, which speculators does not write.

    `UserError` naming what SGLang cannot serve: another algorithm, a vocabulary of its own, a causal window.
    """
    kind, inner = config.get("speculators_model_type"), config.get("transformer_layer_config", {})
    if kind not in _ARCHITECTURES:
        known = ", ".join(_ARCHITECTURES)
        raise UserError(f"{where}: speculators' {kind!r} is no block drafter here", f"import one of {known}")
    if config.get("draft_vocab_size") not in (None, inner.get("vocab_size")):
        raise UserError(
            f"{where}: drafts over {config['draft_vocab_size']} of {inner.get('vocab_size')} tokens",
            "SGLang 0.5.23 has no draft vocabulary for block drafters: train on the whole vocabulary",
        )
    if bool(config.get("sample_from_anchor", kind == "dspark")) != (kind == "dspark"):
        raise UserError(
            f"{where}: sample_from_anchor is not what SGLang 0.5.23 has for {kind}", "train it the other way"
        )
    ids = config.get("aux_hidden_state_layer_ids")
    if not ids or min(ids) < 1:
        raise UserError(
            f"{where}: aux_hidden_state_layer_ids {ids}: SGLang captures the outputs of layers, not of the embedding",
            "train on ids from 1 on",
        )
    sliding = "sliding_attention" in (inner.get("layer_types") or ())
    if sliding and not config.get("sliding_window_non_causal", kind == "dflash2"):
        raise UserError(f"{where}: sliding layers that are causal within a block", "train with full attention")
    nested = {"mask_token_id": config.get("mask_token_id"), "target_layer_ids": [i - 1 for i in ids]}
    nested |= {name: config[name] for name in _HEADS.get(str(kind), ()) if name in config}
    dropped = ("architectures", "model_type", "auto_map", "_name_or_path", "dtype", "torch_dtype")
    kept = {key: value for key, value in inner.items() if key not in dropped}
    return {
        **kept,
        **of_target,
        "architectures": [_ARCHITECTURES[str(kind)]],
        "model_type": "qwen3",
        "is_causal": False,
        "block_size": config.get("block_size", 8),  # speculators' default, which its writer may leave out
        "dflash_config": nested,
    }

"""What a drafter's config.json can have wrong that SGLang 0.5.23 loads anyway, or refuses only minutes later.

Each trap is a generator over (config, target config or None) that yields findings with the remedy. Only the two JSON
files are looked at; the tensors are `check`'s. Sources: SGLang's ``speculative/dflash_utils.py``,
``dspark_components/dspark_config.py``, ``models/{dflash,dspark,lilicorr}.py``; transformers' ``Qwen3Config``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from drafters.model.tensor_shapes import kind, setting
from sglang_specbench.arms import DRAFTED, WINDOW

Config = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """One thing wrong: where it stands, what it does, how to mend it."""

    where: str
    problem: str
    remedy: str


def config_findings(config: Config, target: Config | None) -> list[Finding]:
    """Every config trap that ``config`` falls into; those that need the target are left out without one."""
    if not kind(config):
        known = "DFlashDraftModel, DFlash2DraftModel, Qwen3DSparkModel, LiLiCorrDraftModel"
        problem = f"SGLang has no block drafter {config.get('architectures')}"
        return [Finding("architectures", problem, f"write one of {known} (Domino is DFlashDraftModel)")]
    found = [finding for trap in _TRAPS for finding in trap(config)]
    found += _HEADS.get(kind(config), _no_trap)(config)
    return found + ([f for trap in _BESIDE_TARGET for f in trap(config, target)] if target else [])


def _no_trap(_config: Config) -> Iterator[Finding]:
    yield from ()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _sizes(config: Config) -> Iterator[Finding]:
    names = (
        "hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim intermediate_size vocab_size"
    )
    for name in names.split():
        if not _is_count(config.get(name)):
            yield Finding(name, "missing or not a positive integer", "write it at the top level")


def _rope(config: Config) -> Iterator[Finding]:
    if "rope_theta" not in config and "rope_theta" not in (config.get("rope_parameters") or {}):
        yield Finding(
            "rope_theta",
            "absent: Qwen3Config silently uses 10000, and the drafter drafts poorly",
            'write the value it was trained with, e.g. "rope_theta": 1000000.0',
        )


def _layers(config: Config) -> Iterator[Finding]:
    ids = setting(config, "target_layer_ids")
    if not ids or not all(isinstance(i, int) for i in ids):
        yield Finding(
            "dflash_config.target_layer_ids",
            "absent or not a list of layer numbers: SGLang would assume its own spread",
            "write the 0-based target layers that the drafter was trained on",
        )


def _mask(config: Config) -> Iterator[Finding]:
    mask = setting(config, "mask_token_id")
    if not isinstance(mask, int) or isinstance(mask, bool) or not 0 <= mask < config.get("vocab_size", 0):
        yield Finding(
            "dflash_config.mask_token_id",
            f"{mask!r} is no row of the embedding",
            "write the unused token id that stood for drafted slots in training",
        )


def _block(config: Config) -> Iterator[Finding]:
    block = setting(config, "block_size")
    wanted, counts = (DRAFTED, "drafted tokens") if kind(config) == "dspark" else (WINDOW, "slots, the anchor's too")
    if block != wanted:
        yield Finding(
            "block_size",
            f"{block!r}: every arm drafts {DRAFTED} tokens, and for this architecture block_size counts {counts}",
            f"train and export with block_size {wanted}",
        )


def _attention(config: Config) -> Iterator[Finding]:
    if config.get("is_causal") is not False:
        yield Finding(
            "is_causal",
            f"{config.get('is_causal', 'absent')}: sliding layers (or all) would be causal within the block",
            'write "is_causal": false, unless it was trained causally',
        )
    types = config.get("layer_types")
    if types is not None and len(types) != config.get("num_hidden_layers"):
        yield Finding("layer_types", "its length is not num_hidden_layers", "write one entry for each layer")
    if "sliding_attention" in (types or ()) and not (config.get("sliding_window") and config.get("use_sliding_window")):
        yield Finding(
            "use_sliding_window",
            "a sliding layer, but Qwen3Config drops sliding_window unless use_sliding_window is true",
            'write "use_sliding_window": true and "sliding_window"',
        )


def _dtype(config: Config) -> Iterator[Finding]:
    dtype = config.get("dtype", config.get("torch_dtype"))
    if dtype != "bfloat16":
        yield Finding("dtype", f"{dtype!r}: the arms are compared in bfloat16", 'write "dtype": "bfloat16"')


def _pair(config: Config, one: str, other: str) -> Iterator[Finding]:
    nested = config.get("dflash_config", {})
    if bool(nested.get(one)) != bool(nested.get(other)):
        absent = other if nested.get(one) else one
        yield Finding(f"dflash_config.{absent}", f"{one} and {other} go together", "write both or neither")


def _conv(config: Config) -> Iterator[Finding]:
    yield from _pair(config, "conv_kernel_size", "conv_group_size")
    group = config.get("dflash_config", {}).get("conv_group_size")
    if group and config.get("hidden_size", 0) % group:
        yield Finding("dflash_config.conv_group_size", "does not divide hidden_size", "choose a divisor")


_TRAPS: tuple[Callable[[Config], Iterator[Finding]], ...] = (
    _sizes, _rope, _layers, _mask, _block, _attention, _dtype, _conv,
)  # fmt: skip


def _power_of_two(name: str, value: Any, most: int) -> Iterator[Finding]:
    if not _is_count(value) or value & (value - 1) or value > most:
        yield Finding(
            f"dflash_config.{name}",
            f"{value!r}: the walk's kernel takes a power of two up to {most}",
            "train with 4, 8 or 16 candidates",
        )


def _dflash2(config: Config) -> Iterator[Finding]:
    nested = config.get("dflash_config", {})
    if not _is_count(nested.get("selector_rank")):
        yield Finding(
            "dflash_config.selector_rank",
            "absent: DFlash2DraftModel has no drafter without its selector",
            "write selector_rank and selector_top_k",
        )
    yield from _power_of_two("selector_top_k", nested.get("selector_top_k"), 16)


def _domino(config: Config) -> Iterator[Finding]:
    if not isinstance(setting(config, "shift_label"), bool):
        yield Finding(
            "dflash_config.shift_label",
            f"{setting(config, 'shift_label')!r}: which row predicts which token must be said",
            "write true (row k predicts token k+1) or false, as trained",
        )
    if setting(config, "pure_draft_prefix_len") != 1:
        yield Finding(
            "dflash_config.pure_draft_prefix_len",
            f"{setting(config, 'pure_draft_prefix_len')!r}: SGLang corrects from the second token on",
            "train with 1 and write 1",
        )
    for name in ("gru_hidden_dim", "emb_dim"):
        nested, top = config.get("dflash_config", {}).get(name), config.get(name)
        if not _is_count(setting(config, name)) or (nested and top and nested != top):
            yield Finding(f"dflash_config.{name}", "absent, or unlike its top-level copy", "write it once, nested")


def _dspark(config: Config) -> Iterator[Finding]:
    wanted: dict[str, Callable[[Any], bool]] = {
        "markov_rank": _is_count,
        "markov_head_type": ("vanilla", "gated", "rnn").__contains__,
        "enable_confidence_head": lambda value: isinstance(value, bool),
        "confidence_head_with_markov": lambda value: isinstance(value, bool),
        "sample_from_anchor": lambda value: value is True,
    }
    for name, fits in wanted.items():
        if not fits(config.get(name)):
            yield Finding(
                name,
                f"{config.get(name, 'absent')!r} at the top level, where alone the head's builder looks",
                "write it at the top level, not inside dflash_config or dspark_config",
            )


def _lilicorr(config: Config) -> Iterator[Finding]:
    nested = config.get("dflash_config", {})
    names = "candidate_topk hidden_size num_layers num_heads mlp_ratio factor_dim vector_eps logit_scale"
    for name in (f"lilicorr_{name}" for name in names.split()):
        if not isinstance(nested.get(name), int | float):
            yield Finding(
                f"dflash_config.{name}", "absent: SGLang has no default", "write the value it was trained with"
            )
    if nested.get("lilicorr_embedding_scale", 1) != 1:
        yield Finding(
            "dflash_config.lilicorr_embedding_scale",
            "SGLang knows no such key and would compute another function",
            "export the training run, which moves the scale into token_proj.weight",
        )
    yield from _power_of_two("lilicorr_candidate_topk", nested.get("lilicorr_candidate_topk"), 16)
    width = nested.get("lilicorr_hidden_size") or config.get("hidden_size", 0)
    if width % (nested.get("lilicorr_num_heads") or 1):
        yield Finding("dflash_config.lilicorr_num_heads", f"does not divide the width {width}", "choose a divisor")


_HEADS = {"dflash2": _dflash2, "domino": _domino, "dspark": _dspark, "lilicorr": _lilicorr}


def _same_sizes(config: Config, target: Config) -> Iterator[Finding]:
    for name in ("vocab_size", "hidden_size"):
        if config.get(name) != target[name]:
            yield Finding(
                name,
                f"{config.get(name)} here, {target[name]} in the target whose embedding and head it borrows",
                "train against this target, with its config's value (padding included)",
            )


def _depth(config: Config, target: Config) -> Iterator[Finding]:
    layers = target["num_hidden_layers"]
    bad = [i for i in setting(config, "target_layer_ids") or () if not 0 <= i <= layers - 2]
    if bad:
        yield Finding(
            "dflash_config.target_layer_ids",
            f"{bad}: a layer's output is captured where the next one of {layers} begins",
            f"capture layers 0 to {layers - 2}",
        )
    if (said := setting(config, "num_target_layers")) not in (None, layers):
        yield Finding("num_target_layers", f"{said} here, {layers} in the target", "is this the right target?")


def _positions(config: Config, target: Config) -> Iterator[Finding]:
    if config.get("max_position_embeddings", 0) < target["max_position_embeddings"]:
        yield Finding(
            "max_position_embeddings",
            f"below the target's {target['max_position_embeddings']}: the server refuses long contexts at start",
            "write the target's value",
        )


def _mask_in_text(config: Config, target: Config) -> Iterator[Finding]:
    named = [target.get(name) for name in ("eos_token_id", "bos_token_id", "pad_token_id")]
    used = [i for value in named for i in (value if isinstance(value, list) else [value]) if i is not None]
    if setting(config, "mask_token_id") in used:
        yield Finding("dflash_config.mask_token_id", "occurs in text (eos, bos or pad)", "use an id nothing emits")


_BESIDE_TARGET = (_same_sizes, _depth, _positions, _mask_in_text)

"""What a drafter's config.json can have wrong that SGLang 0.5.23 loads anyway, or refuses only minutes later.

Each trap is a generator over (config, target config or None) that yields findings with the remedy; a head's stand in
its arm's folder (``config_checks.head_findings``). Only the two JSON
files are looked at; the tensors are `check`'s. Sources: SGLang's ``speculative/dflash_utils.py``,
``dspark_components/dspark_config.py``, ``models/{dflash,dspark,lilicorr}.py``; transformers' ``Qwen3Config``.
"""

from collections.abc import Callable, Iterator

from drafters.model.finding import Config, Finding, is_count
from drafters.model.registry import package, submodule
from sglang_specbench import width
from sglang_specbench.checkpoint_kind import block_drafters, kind, rope_theta, row, setting


def config_findings(config: Config, target: Config | None) -> list[Finding]:
    """Every config trap that ``config`` falls into; those that need the target are left out without one."""
    if not kind(config):
        known = ", ".join(dict.fromkeys(row(name).architectures[0] for name in block_drafters()))
        problem = f"SGLang has no block drafter {config.get('architectures')}"
        return [Finding("architectures", problem, f"write one of {known} (Domino is DFlashDraftModel)")]
    found = [finding for trap in _TRAPS for finding in trap(config)]
    found += submodule(kind(config), "config_checks").head_findings(config)
    return found + ([f for trap in _BESIDE_TARGET for f in trap(config, target)] if target else [])


def _sizes(config: Config) -> Iterator[Finding]:
    names = (
        "hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim intermediate_size vocab_size"
    )
    for name in names.split():
        if not is_count(config.get(name)):
            yield Finding(name, "missing or not a positive integer", "write it at the top level")


def _rope(config: Config) -> Iterator[Finding]:
    if rope_theta(config) is None:
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
    if width.window_of(config, row(kind(config))) is None:
        anchor = package(kind(config)).Settings.counts_anchor
        counts = "slots, the anchor's too" if anchor else "drafted tokens"
        yield Finding(
            "block_size",
            f"{setting(config, 'block_size')!r}: no width that can be served; for this architecture it counts {counts}",
            "write the block size that it was trained with",
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

"""Is this checkpoint what its arm would serve? Answered from config.json and safetensors headers alone, no torch.

SGLang 0.5.23 says nothing about most of what is refused here: an absent rope_theta becomes 10,000 (transformers 5), a
missing selector serves as plain argmax (``models/dflash.py:945``), a Domino checkpoint under the name of DFlash runs
as Domino. Deeper checks, of every key and shape, are `specbench check`'s.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sglang_specbench import width
from sglang_specbench.arms import WINDOW, Arm
from sglang_specbench.checkpoint_kind import block_drafters, kind, rope_theta, setting
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import open_file, read_object, reading

REMEDY = "export the checkpoint again, or download it again"
TENSORS_BYTES = 1 << 40  # of one safetensors file
MOST_LAYERS = 10_000
INDEX = "model.safetensors.index.json"
_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.safetensors")


def check(folder: Path, arm: Arm, target: Path | None) -> None:
    """`UserError` naming file, key and remedy if ``arm`` would not serve ``folder`` as what it is called.

    ``target``: the target's folder, or None while it is not here.
    """
    check_config(folder, arm, target)
    missing = sorted(set(arm.tensors) - tensor_names(folder))  # a download that broke off is named here, too
    if missing:
        raise UserError(
            f"{folder}: no tensor {missing[0]!r}: SGLang would serve arm {arm.name!r} without it and say nothing",
            "export the checkpoint again; specbench check lists every key",
        )


def check_config(folder: Path, arm: Arm, target: Path | None) -> None:
    """What of `check` needs no weights."""
    path = folder / "config.json"
    config = read_config(path)
    _check_architecture(path, config, arm)
    _check_rope(path, config)
    _check_block(path, config, arm)
    if target is not None:
        _check_target(path, config, target / "config.json")
    for key in arm.sizes:
        value = setting(config, key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(f"{path}: {key}: {str(value)[:80]}, arm {arm.name!r} needs a positive whole number", REMEDY)


def window(folder: Path, arm: Arm) -> int:
    """Positions that ``arm`` verifies a block with the drafter in ``folder``; of no meaning without a block head."""
    return width.window_of(read_config(folder / "config.json"), arm) or WINDOW


def check_target(folder: Path) -> None:
    """`UserError` unless ``folder`` holds a whole target: a config of numbers, and every shard of its weights."""
    path = folder / "config.json"
    config = read_config(path)
    for key in ("hidden_size", "vocab_size"):
        _size(path, config, key)
    tensor_names(folder)


def vocabulary(folder: Path) -> int:
    """How many token ids the model in ``folder`` has."""
    path = folder / "config.json"
    return _size(path, read_config(path), "vocab_size")


def read_config(path: Path) -> dict[str, Any]:
    """A model's config.json, with the fields that are read here of the right type."""
    config = read_object(path, REMEDY)
    names = config.get("architectures") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{path}: architectures: expected a list of names, got {str(names)[:80]}", REMEDY)
    for key in ("dflash_config", "rope_parameters"):
        if not isinstance(config.get(key) or {}, dict):
            raise UserError(f"{path}: {key}: expected an object, got {str(config[key])[:80]}", REMEDY)
    layers = config.get("num_hidden_layers")
    if isinstance(layers, int) and layers > MOST_LAYERS:
        raise UserError(f"{path}: num_hidden_layers: {layers:,} is more than {MOST_LAYERS:,}", REMEDY)
    return config


def tensor_names(folder: Path) -> set[str]:
    """Names in the headers of all safetensors files of ``folder``; `UserError` for a broken or a missing one."""
    return set(tensor_shapes(folder))


def tensor_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Name -> shape, from the same headers; no weight is read."""
    from safetensors import safe_open

    missing = next(_missing_shards(folder), None)
    if missing:
        raise UserError(f"{folder / missing}: missing, one of the files of this model", REMEDY)
    shapes: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        open_file(path, TENSORS_BYTES, REMEDY).close()
        with reading(path, REMEDY, "not a safetensors file"), safe_open(path, framework="np") as file:
            shapes |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return shapes


def _missing_shards(folder: Path) -> Iterator[str]:
    """File names that the folder's index, or the numbers in the names of its files, promise and that are not there."""
    here = {path.name for path in folder.glob("*.safetensors")}
    if (folder / INDEX).is_file():
        table = read_object(folder / INDEX, REMEDY).get("weight_map")
        if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
            raise UserError(f"{folder / INDEX}: weight_map: expected an object of file names", REMEDY)
        yield from sorted(set(table.values()) - here)
    for stem, _, total in (found.groups() for name in sorted(here) if (found := _SHARD.fullmatch(name))):
        for number in range(1, int(total) + 1):
            if (name := f"{stem}-{number:05d}-of-{total}.safetensors") not in here:
                yield name


def _size(path: Path, config: Mapping[str, Any], key: str) -> int:
    """A size that a model can have. Configs of models that see or hear keep theirs one level down."""
    inner = config.get("text_config")
    value = config.get(key, inner.get(key) if isinstance(inner, dict) else None)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 31:
        raise UserError(f"{path}: {key}: expected a positive whole number, got {str(value)[:80]}", REMEDY)
    return value


def _check_architecture(path: Path, config: Mapping[str, Any], arm: Arm) -> None:
    names = config.get("architectures") or [None]
    if arm.architectures and names[0] not in arm.architectures:
        wanted = " or ".join(arm.architectures)
        raise UserError(
            f"{path}: architectures: {names[0]!r}, arm {arm.name!r} needs {wanted}", "name its own checkpoint"
        )
    found = kind(config)
    if arm.kind in block_drafters() and found != arm.kind:
        raise UserError(
            f"{path}: this is a {found!r} checkpoint, arm {arm.name!r} needs {arm.kind!r}",
            "name its own checkpoint, or rename the drafter in the sweep",
        )


def _check_rope(path: Path, config: Mapping[str, Any]) -> None:
    if rope_theta(config) is None:
        raise UserError(
            f"{path}: no rope_theta: transformers would take 10000",
            "write the target's rope_theta into it",
        )


def _check_block(path: Path, config: Mapping[str, Any], arm: Arm) -> None:
    if arm.head and width.window_of(config, arm) is None:
        least, most = width.block_size(arm, 2), width.block_size(arm, width.WIDEST)
        found = str(setting(config, "block_size"))[:80]
        raise UserError(
            f"{path}: block_size: {found}, arm {arm.name!r} can be served with {least} to {most}",
            "write the block size that it was trained with",
        )


def _check_target(path: Path, config: Mapping[str, Any], target: Path) -> None:
    wanted = read_config(target)
    for key in ("hidden_size", "vocab_size"):
        if config.get(key) != (size := _size(target, wanted, key)):
            raise UserError(
                f"{path}: {key}: {str(config.get(key))[:80]}, the target {target} has {size}",
                "name the drafter of this target",
            )

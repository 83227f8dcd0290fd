"""Is this checkpoint what its arm would serve? Answered from config.json and safetensors headers alone, no torch.

SGLang 0.5.23 says nothing about most of what is refused here: an absent rope_theta becomes 10,000 (transformers 5), a
missing selector serves as plain argmax (``models/dflash.py:945``), a Domino checkpoint under the name of DFlash runs
as Domino. Deeper checks, of every key and shape, are `specbench check`'s.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sglang_specbench.arms import DRAFTED, WINDOW, Arm
from sglang_specbench.checkpoint_kind import block_drafters, kind, setting
from sglang_specbench.errors import UserError


def check(folder: Path, arm: Arm, target: Path | None) -> None:
    """`UserError` naming file, key and remedy if ``arm`` would not serve ``folder`` as what it is called.

    ``target``: the target's folder, or None while it is not here.
    """
    path = folder / "config.json"
    config = read_config(path)
    _check_architecture(path, config, arm)
    _check_rope(path, config)
    _check_block(path, config, arm)
    if target is not None:
        _check_target(path, config, target / "config.json")
    tensor_names(folder)  # a download that broke off is named here, not by a server that dies
    _check_own(folder, config, arm)


def read_config(path: Path) -> dict[str, Any]:
    """A model's config.json."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}", "export the checkpoint again") from None
    if not isinstance(config, dict):
        raise UserError(f"{path}: expected an object", "export the checkpoint again")
    return config


def tensor_names(folder: Path) -> set[str]:
    """Names in the headers of all safetensors files of ``folder`` (8 bytes of length, then JSON)."""
    names: set[str] = set()
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with path.open("rb") as handle:
                (length,) = struct.unpack("<Q", handle.read(8))
                header = json.loads(handle.read(min(length, path.stat().st_size)))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            if path.stat().st_size < 8 + length + max(ends, default=0):
                raise ValueError("shorter than its header says")
            names |= set(header)
        except (OSError, ValueError, KeyError, struct.error) as error:
            raise UserError(f"{path}: not a safetensors file: {error}", "export the checkpoint again") from None
    return names - {"__metadata__"}


def _check_architecture(path: Path, config: Mapping[str, Any], arm: Arm) -> None:
    names = config.get("architectures") or [None]
    if arm.architectures and names[0] not in arm.architectures:
        wanted = " or ".join(arm.architectures)
        raise UserError(
            f"{path}: architectures: {names[0]!r}, arm {arm.name!r} needs {wanted}", "name its own checkpoint"
        )
    found = kind(config)
    if arm.checkpoint in block_drafters() and found != arm.checkpoint:
        raise UserError(
            f"{path}: this is a {found!r} checkpoint, arm {arm.name!r} needs {arm.checkpoint!r}",
            "name its own checkpoint, or rename the drafter in the sweep",
        )


def _check_rope(path: Path, config: Mapping[str, Any]) -> None:
    parameters = config.get("rope_parameters") or {}
    if "rope_theta" not in config and "rope_theta" not in parameters:
        raise UserError(
            f"{path}: no rope_theta: transformers would take 10000",
            "write the target's rope_theta into it",
        )


def _check_block(path: Path, config: Mapping[str, Any], arm: Arm) -> None:
    """DFLASH counts the anchor in block_size, DSPARK does not (SGLang ``speculative_hook.py``)."""
    wanted = {"DFLASH": WINDOW, "DSPARK": DRAFTED}.get(arm.algorithm)
    found = setting(config, "block_size")
    if wanted and found != wanted:
        raise UserError(
            f"{path}: block_size: {found!r}, arm {arm.name!r} is served with {wanted}",
            f"train with {DRAFTED} drafted slots and write block_size {wanted}",
        )


def _check_target(path: Path, config: Mapping[str, Any], target: Path) -> None:
    wanted = read_config(target)
    for key in ("hidden_size", "vocab_size"):
        if config.get(key) != wanted.get(key):
            raise UserError(
                f"{path}: {key}: {config.get(key)!r}, the target {target} has {wanted.get(key)!r}",
                "name the drafter of this target",
            )


def _check_own(folder: Path, config: Mapping[str, Any], arm: Arm) -> None:
    """What the arm's row demands beyond any drafter: the sizes of its head, and tensors that SGLang would not miss."""
    for key in arm.sizes:
        value = setting(config, key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(
                f"{folder / 'config.json'}: {key}: {str(value)[:80]}, arm {arm.name!r} needs a positive whole number",
                "export the checkpoint again",
            )
    missing = sorted(set(arm.tensors) - tensor_names(folder))
    if missing:
        raise UserError(
            f"{folder}: no tensor {missing[0]!r}: SGLang would serve arm {arm.name!r} without it and say nothing",
            "export the checkpoint again; specbench check lists every key",
        )

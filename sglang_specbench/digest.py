"""The content address of a model folder: what a result means by "these weights".

A digest covers ``config.json``, every ``*.safetensors`` and the tokenizer files, by name and bytes. Shards of a
large model are hashed once and remembered in the user's cache folder, so that planning stays quick. A memo holds for
one inode at one change time (ctime). Size and modification time would not do: training writes shards of one size, and
copying tools set the modification time back, while the change time is the kernel's and no program sets it. A file
that changed within the last two seconds is not remembered: its next write could fall into the same tick of the clock.
"""

import contextlib
import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import NamedTuple

from sglang_specbench.atomic_file import write_text
from sglang_specbench.errors import UserError

_COUNTED = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "mask_embedding.pt",
)
REMEMBERED_BYTES = 64 << 20  # smaller files are hashed each time: a tenth of a second
SETTLED_NS = 2_000_000_000  # the coarsest clock of a file system in use (FAT, some network ones)
_HEX = re.compile(r"[0-9a-f]{64}")


def weights_digest(folder: Path) -> str:
    """Sha256 (hex) over the files of ``folder`` that decide what it computes.

    Raises `UserError` if the folder, its config.json or its safetensors are missing.
    """
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder}: no config.json", "name a checkpoint folder, or fetch it first")
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise UserError(f"{folder}: no *.safetensors", "export the checkpoint, or fetch it first")
    files = [folder / name for name in _COUNTED if (folder / name).is_file()] + weights
    total = hashlib.sha256()
    for path in files:
        total.update(os.fsencode(f"{path.name}\0{file_digest(path)}\n"))
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """Sha256 (hex) of one file; of a large one remembered while no write can have touched it."""
    known = _version(path)
    if known.st_size <= REMEMBERED_BYTES:
        return _sha256(path)
    memo = _cache_dir() / hashlib.sha256(os.fsencode(f"{path.resolve()}\0{known}")).hexdigest()
    if (remembered := _remembered(memo)) is not None:
        return remembered
    digest = _sha256(path)
    if time.time_ns() - known.st_ctime_ns > SETTLED_NS and _version(path) == known:
        _remember(memo, {"sha256": digest, "path": str(path)})
    return digest


class _Version(NamedTuple):
    """What no write leaves as it is; fields of `os.stat_result`."""

    st_dev: int
    st_ino: int
    st_size: int
    st_mtime_ns: int
    st_ctime_ns: int


def _version(path: Path) -> _Version:
    stat = path.stat()
    return _Version(*(getattr(stat, name) for name in _Version._fields))


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _remembered(memo: Path) -> str | None:
    """The digest in ``memo``; None if it is not there, or damaged: a killed writer or a full disk leaves such."""
    try:
        found = json.loads(memo.read_text())["sha256"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) and _HEX.fullmatch(found) else None


def _remember(memo: Path, what: dict[str, str]) -> None:
    """Write ``memo`` whole or not at all; a cache that cannot be written costs time and nothing else."""
    with contextlib.suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        write_text(memo, json.dumps(what))


def _cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sglang-specbench" / "digests"

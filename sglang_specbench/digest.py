"""The content address of a model folder: what a result means by "these weights".

A digest covers ``config.json``, every ``*.safetensors`` and the tokenizer files, by name and bytes. Shards of a
large model are hashed once per (size, mtime) and remembered in the user's cache folder, so that planning stays quick.
"""

import hashlib
import json
import os
from pathlib import Path

from sglang_specbench.errors import UserError

_COUNTED = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "mask_embedding.pt",
)


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
        total.update(f"{path.name}\0{file_digest(path)}\n".encode())
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """Sha256 (hex) of one file, remembered by resolved path, size and modification time."""
    stat = path.stat()
    key = hashlib.sha256(f"{path.resolve()}\0{stat.st_size}\0{stat.st_mtime_ns}".encode()).hexdigest()
    memo = _cache_dir() / key
    if stat.st_size > 64 << 20 and memo.is_file():
        return str(json.loads(memo.read_text())["sha256"])
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if stat.st_size > 64 << 20:
        memo.parent.mkdir(parents=True, exist_ok=True)
        memo.write_text(json.dumps({"sha256": digest, "path": str(path)}))
    return digest


def _cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sglang-specbench" / "digests"

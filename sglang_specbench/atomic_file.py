"""Text files that are there whole or not at all, whatever ends the writer, and the folders that hold them."""

import os
from pathlib import Path

from sglang_specbench.errors import UserError


def make_folder(folder: Path, where: str) -> None:
    """Make ``folder``; `UserError` naming ``where`` it was asked for if that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{where} {folder}: {error.strerror}", "name a folder that can be written") from None


def write_text(path: Path, text: str) -> None:
    """Write ``path`` by an atomic rename; an OSError leaves what was there before."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise

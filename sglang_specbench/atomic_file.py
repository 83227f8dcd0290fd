"""Files that are there whole or not at all, whatever ends the writer, and the folders that hold them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from sglang_specbench.errors import UserError

PARTIAL = ".partial"  # suffix of a file that is being written, or whose writer was killed


def make_folder(folder: Path, where: str) -> None:
    """Make ``folder``; `UserError` naming ``where`` it was asked for if that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{where} {folder}: {error.strerror}", "name a folder that can be written") from None


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """The path to write under, which is renamed to ``path`` at the end; whatever is raised leaves what was there."""
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        yield partial
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write ``path`` whole, as UTF-8; an OSError leaves what was there before."""
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")

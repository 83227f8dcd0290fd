"""Text files that are there whole or not at all, whatever ends the writer."""

import os
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write ``path`` by an atomic rename; an OSError leaves what was there before."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise

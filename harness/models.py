"""Where a model's files lie, and the digest that a cell records of them.

A source is ``mini:NAME`` (shipped with drafters/mini), a folder, or a hub id. Nothing is downloaded here.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Model:
    """A resolved source."""

    source: str
    folder: Path | None  # None: a hub id that is not downloaded
    digest: str  # sglang_specbench.digest.weights_digest, or "hub:ID@REVISION" while not downloaded
    fetch: str = ""  # the command that downloads it; "" when the folder is here


def resolve(source: str, revision: str = "", where: str = "") -> Model:
    """Folder and digest of ``source``; `UserError` (naming ``where``) if a folder or mini model is missing."""
    raise NotImplementedError

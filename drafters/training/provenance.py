"""Where a checkpoint comes from: ``provenance.json`` beside its weights, which no digest of weights covers.

Whatever is not known is null. ``head_parameters`` counts the tensors outside the backbone: what the arm adds to DFlash,
convolutions in the backbone not included.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drafters.model.tensor_shapes import head_parameters

FILE = "provenance.json"
_KEYS = ("arm", "contract", "recipe", "steps", "seed", "corpus_digest", "commit", "target_digest")


def record(config: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a drafter with this config.json: ``known`` holds any of the keys, the others are null."""
    return {
        "schema": 1,
        **{key: known.get(key) for key in _KEYS},
        "head_parameters": head_parameters(dict(config)),
    }


def write(folder: Path, config: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Write the record into the checkpoint ``folder``."""
    (folder / FILE).write_text(json.dumps(record(config, known), indent=2) + "\n", encoding="utf-8")


def commit() -> str | None:
    """Commit of these sources, "+" behind it when they differ from it; None outside a git checkout."""
    try:
        head = _git("rev-parse", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    sources = Path(__file__).parents[1]
    done = subprocess.run(["git", "-C", str(sources), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()

"""Which run the gate compares with: a small JSON file that says who accepted what, and when.

The file names a run folder and fingerprints its cells, so that a baseline that was edited or re-measured after it was
accepted is refused rather than silently compared with.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.store.columns import FILE_BYTES
from sglang_specbench.atomic_file import make_folder, write_text
from sglang_specbench.config import from_dict
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import read_bytes, read_object

REMEDY = "accept one: specbench baseline accept RUN"


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """``run`` is relative to the baseline file's folder, so that a checkout can be moved."""

    run: str
    fingerprint: str
    accepted: str  # UTC
    why: str


def accept(path: Path, run_dir: Path, why: str) -> Baseline:
    """Make ``run_dir`` the baseline recorded at ``path``; `UserError` if it has no measured cell."""
    accepted = Baseline(
        run=os.path.relpath(run_dir, path.parent),
        fingerprint=fingerprint(run_dir),
        accepted=datetime.now(UTC).isoformat(timespec="seconds"),
        why=why,
    )
    make_folder(path.parent, "baseline accept: --file")
    write_text(path, json.dumps(asdict(accepted), indent=1) + "\n")
    return accepted


def load(path: Path) -> tuple[Baseline, Path]:
    """The baseline and its run folder; `UserError` (exit code 4) if the run is gone or was changed."""
    if not path.exists():
        raise UserError(f"{path}: no baseline", REMEDY)
    baseline = from_dict(Baseline, read_object(path, REMEDY), str(path))
    run_dir = path.parent / baseline.run
    if fingerprint(run_dir) != baseline.fingerprint:
        raise UserError(f"{run_dir}: changed since it was accepted as baseline", "accept it again, with a reason", 4)
    return baseline, run_dir


def fingerprint(run_dir: Path) -> str:
    """Sha256 (hex) over the names and bytes of a run's cell files and of its plan, which says what the run lacks."""
    cells = sorted((run_dir / "cells").glob("*.parquet"))
    if not cells:
        raise UserError(f"{run_dir}: no measured cells", "name a run folder of specbench run")
    total = hashlib.sha256()
    for file in (*cells, *run_dir.glob("plan.json")):
        total.update(file.name.encode() + hashlib.sha256(read_bytes(file, FILE_BYTES)).digest())
    return total.hexdigest()

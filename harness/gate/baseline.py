"""Which run the gate compares with: a small JSON file that says who accepted what, and when.

The file names a run folder and fingerprints its cells, so that a baseline that was edited or re-measured after it was
accepted is refused rather than silently compared with. The rows stay in the folder: the gate pairs prompts and judges
allocations, for which there are no smaller sums. So file and folder belong together, in a repository, too.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.gate import troubles
from harness.load_results import load_results
from harness.store.columns import FILE_BYTES
from harness.sweep import plan
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
    """Make ``run_dir`` the baseline recorded at ``path``; `UserError` if it lacks a cell that its plan names."""
    _require_whole(run_dir)
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
    if not run_dir.is_dir():
        hint = "a baseline is the file and that folder: commit both, or accept another run"
        raise UserError(f"{path}: its run {run_dir} is not here", hint, 4)
    if fingerprint(run_dir) != baseline.fingerprint:
        raise UserError(f"{run_dir}: changed since it was accepted as baseline", "accept it again, with a reason", 4)
    return baseline, run_dir


def _require_whole(run_dir: Path) -> None:
    results = load_results(str(run_dir))
    if results.planned is None:
        raise UserError(f"{run_dir}: no plan.json, so what it lacks cannot be told", "measure it again: specbench run")
    if results.absent:
        first = results.absent[0]
        lacking = f"{len(results.absent)} of {len(results.planned)} cells failed or were not run"
        hint = f"finish it: specbench run {run_dir / 'sweep.toml'} --out {run_dir}"
        raise UserError(f"{run_dir}: {lacking}, the first: {first.setting}: {first}", hint)


def one_repeat(run_dir: Path) -> str:
    """What the gate cannot decide against a run of one repeat, and what helps; "" for more of them."""
    return "" if troubles.repeated(plan.read(run_dir).cells) else troubles.ONE_REPEAT


def parts(run_dir: Path) -> list[Path]:
    """What of a run the gate reads: to be kept, and committed, with the baseline's file."""
    kept = (*sorted((run_dir / "cells").glob("*.parquet")), run_dir / "plan.json", run_dir / "sweep.toml")
    return [path for path in kept if path.is_file()]


def fingerprint(run_dir: Path) -> str:
    """Sha256 (hex) over the names and bytes of a run's cell files and of its plan, which says what the run lacks."""
    cells = sorted((run_dir / "cells").glob("*.parquet"))
    if not cells:
        raise UserError(f"{run_dir}: no measured cells", "name a run folder of specbench run")
    total = hashlib.sha256()
    for file in (*cells, *run_dir.glob("plan.json")):
        total.update(os.fsencode(file.name) + hashlib.sha256(read_bytes(file, FILE_BYTES)).digest())
    return total.hexdigest()

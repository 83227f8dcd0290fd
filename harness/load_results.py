"""From the word a user writes for a run to its `Results`: a run folder, several that belong together, or ``paper``."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.paper import published
from harness.stats.estimates import measure
from harness.stats.results import Results
from harness.store import run as store
from harness.sweep import plan
from sglang_specbench.errors import UserError


def load_results(*runs: str) -> Results:
    """Estimates of one run, or of several folders as one; what their plans still lack is a hole.

    `UserError` for no such folder, a folder without cells, or runs that were measured under unlike conditions.
    """
    if published.NAME in runs:
        if len(runs) > 1:
            raise UserError("'paper' cannot be merged with a measured run", "see: specbench compare RUN paper")
        return published.results()
    folders = [Path(run) for run in runs]
    frames = store.load(folders[0]) if len(folders) == 1 else merged(folders)
    if frames.cells.empty:
        raise UserError(f"{', '.join(runs)}: no cells", "measure some: specbench run")
    planned = [cell for f in folders if (f / "plan.json").is_file() for cell in plan.read(f).cells]
    return measure(frames.cells, frames.rows, " + ".join(runs), planned)


def merged(folders: Sequence[Path]) -> store.Frames:
    """Frames of several run folders; unlike runs are refused by `harness.store.run.merge`."""
    with TemporaryDirectory(prefix="specbench-") as scratch:
        store.merge(folders, Path(scratch))
        return store.load(Path(scratch))

"""From the word a user writes for a run to its `Results`: a run folder, several that belong together, or ``paper``.

Here, and only here, a run meets its plan and the certificates of its arms, so that whoever reads `Results` knows what
is absent and what is unaudited.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.audit.coverage import read, unaudited
from harness.paper import published
from harness.schema.cell import Cell
from harness.stats.chosen import of_arms
from harness.stats.estimates import measure
from harness.stats.results import Results
from harness.store import run as store
from harness.store.frames import Frames
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
    return estimated(frames_of(folders), folders, " + ".join(runs))


def load_run(run: str, arms: str = "") -> tuple[Results, Frames | None]:
    """Estimates of one run, and what they were made of; None for ``paper``. Raises as `load_results`.

    ``arms``: only these and AR, as `harness.stats.chosen.of_arms` takes them; the frames hold all.
    """
    if run == published.NAME:
        return of_arms(published.results(), arms), None
    frames = frames_of([Path(run)])
    return of_arms(estimated(frames, [Path(run)], run), arms), frames


def frames_of(folders: Sequence[Path]) -> Frames:
    """Cells and rows of one run folder, or of several as one. Raises as `load_results`."""
    frames = store.load(folders[0]) if len(folders) == 1 else merged(folders)
    if frames.cells.empty:
        raise UserError(f"{', '.join(map(str, folders))}: no cells", "measure some: specbench run")
    return frames


def estimated(frames: Frames, folders: Sequence[Path], name: str) -> Results:
    """Estimates of ``frames``, which were read from ``folders``, with their plans and certificates."""
    results = measure(frames.cells, frames.rows, name, _planned(folders))
    results.unaudited = unaudited(frames.cells, read(folders))
    return results


def _planned(folders: Sequence[Path]) -> list[Cell] | None:
    """Every cell that the folders' plans name; None if one of them has no plan."""
    if not all((folder / "plan.json").is_file() for folder in folders):
        return None
    return list(dict.fromkeys(cell for folder in folders for cell in plan.read(folder).cells))


def merged(folders: Sequence[Path]) -> Frames:
    """Frames of several run folders; unlike runs are refused by `harness.store.run.merge`."""
    with TemporaryDirectory(prefix="specbench-") as scratch:
        store.merge(folders, Path(scratch))
        return store.load(Path(scratch))

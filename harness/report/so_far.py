"""The first table of a run that goes on: once, as soon as half of the arms of some place have been measured.

Somebody who waits for a whole sweep sees early whether it measures what was meant.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from harness.load_results import estimated, frames_of
from harness.schema.cell import Cell
from harness.schema.header import Header, Outcome
from harness.stats.greedy_match import equalities
from harness.sweep.sweep import AR
from harness.tables.render import terminal
from harness.tables.run_summary import of_place
from sglang_specbench.console import Console
from sglang_specbench.errors import UserError

Key = tuple[str, str, str, float, int, int, int]  # a place, in one allocation
FEW_CELLS = 8  # a run of fewer is at its end soon enough


class SoFar:
    """Watches the cells of ``planned`` end; ``cell`` prints the table when it is time."""

    def __init__(self, run_dir: Path, planned: Iterable[Cell], console: Console) -> None:
        self._run_dir, self._console = run_dir, console
        opening = [cell for cell in planned if not cell.replica]
        self._arms = Counter(map(_key, opening))
        self._left = len(opening)
        self._done: dict[Key, set[str]] = defaultdict(set)
        self._printed = self._left < FEW_CELLS

    def cell(self, header: Header) -> None:
        """A cell is written."""
        self._left -= not header.cell.replica
        if self._printed or header.outcome != Outcome.OK:
            return
        key = _key(header.cell)
        arms = self._done[key]
        arms.add(header.cell.arm)
        if AR in arms and len(arms) > 1 and 2 * len(arms) >= self._arms[key] and self._left:
            self._printed = True
            try:
                self._print(header.cell)
            except UserError as error:  # it will be said again at the end: no reason to stop measuring now
                self._console.print(f"no table so far: {error}", soft_wrap=True)

    def _print(self, cell: Cell) -> None:
        frames = frames_of([self._run_dir])
        results = estimated(frames, [self._run_dir], str(self._run_dir))
        compared = list(equalities(frames.cells, frames.rows))
        place = next(s for s, cells in results.sources.items() if cell.id in cells and not s.category).of("")
        self._console.print(f"so far, with {self._left} cells still to be measured:")
        self._console.print(terminal(of_place(place, results, frames, compared)), end="", soft_wrap=True)


def _key(cell: Cell) -> Key:
    place = (cell.target, cell.prompt_set, cell.tier, cell.temperature, cell.concurrency)
    return (*place, cell.seed, cell.repeat)

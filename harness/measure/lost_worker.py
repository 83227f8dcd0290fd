"""An allocation whose worker ended before its time: tried again, and then a failure row for each cell that it owes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.measure.launch import Order
from harness.schema.cell import Cell
from harness.schema.header import Header
from harness.store import run as store
from harness.sweep.plan import Allocation

TRIES = 2  # the second may have met a machine that comes back; a third would hide one that does not


@dataclass(frozen=True, kw_only=True)
class Task:
    """Cells of one allocation for one worker. ``tries``: how often a worker has been lost with it."""

    allocation: Allocation
    cells: tuple[Cell, ...]
    tries: int = 0


def after_loss(order: Order, task: Task, why: str) -> tuple[Task | None, list[Header]]:
    """What is left of ``task`` to try again, or None and failure rows, which are written; and the cells that are ok.

    ``why`` is what is known of the worker's end.
    """
    written = store.headers(order.run_dir)
    done = [written[c.id] for c in task.cells if c.id in written and written[c.id].outcome == "ok"]
    finished = {header.cell.id for header in done}
    left = tuple(cell for cell in task.cells if cell.id not in finished)
    if not left:
        return None, done
    if task.tries + 1 < TRIES:
        return Task(allocation=task.allocation, cells=left, tries=task.tries + 1), done
    return None, [*done, *_failures(order, task.allocation, left, why)]


def _failures(order: Order, allocation: Allocation, left: Sequence[Cell], why: str) -> list[Header]:
    found = []
    for cell in left:
        header = Header(
            cell=cell,
            outcome="infrastructure",
            reason=f"its worker was lost {TRIES} times: {why}",
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            allocation=allocation.id,
        )
        store.write_cell(order.run_dir, header, [])
        found.append(header)
    return found

"""Allocations spread over GPUs with Ray: one GPU, one allocation, so speedups stay within a device.

The driver holds the run's lock; workers write their own cells into the shared folder. A lost worker costs the cells
that it had not written, as failure rows, and no other allocation. Ray is imported only here.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from harness.measure.launch import Order, Watchers
from harness.measure.run import run_allocation
from harness.schema.cell import Cell
from harness.schema.header import Header
from harness.store import run as store
from harness.sweep.plan import Allocation, Plan
from sglang_specbench.errors import UserError


def run_on_ray(order: Order, plan: Plan, wanted: Mapping[str, Cell], watchers: Watchers) -> None:
    """Measure ``wanted``; cells are reported when their allocation ends. `UserError` without the extra ``ray``."""
    try:
        import ray
    except ImportError:
        raise UserError("--executor ray needs Ray", 'pip install "sglang-specbench[ray]"') from None
    ray.init(ignore_reinit_error=True)
    gpus = 1 if any(cell.device == "cuda" for cell in wanted.values()) else 0
    remote = ray.remote(num_gpus=gpus, max_retries=0)(_measured)
    sent = {
        remote.remote(order, allocation, [cell.id for cell in chosen]): (allocation, chosen)
        for allocation in plan.allocations
        if (chosen := [c for launch in allocation.launches for c in launch.cells if c.id in wanted])
    }
    waiting = list(sent)
    while waiting:
        done, waiting = ray.wait(waiting)
        try:
            headers = ray.get(done[0])
        except Exception as error:  # noqa: BLE001 - what a worker raised, or that it is gone
            headers = _lost(order, *sent[done[0]], " ".join(str(error).split())[:300] or type(error).__name__)
        for header in headers:
            watchers.cell(header)


def _lost(order: Order, allocation: Allocation, chosen: Sequence[Cell], why: str) -> list[Header]:
    """What a worker that ended early has written of ``chosen``; a failure row for each of the others."""
    written = store.headers(order.run_dir)
    found = []
    for cell in chosen:
        header = written.get(cell.id)
        if header is None or header.outcome != "ok":
            header = Header(
                cell=cell,
                outcome="infrastructure",
                reason=f"its Ray worker was lost: {why}",
                started_at=datetime.now(UTC).isoformat(timespec="seconds"),
                allocation=allocation.id,
            )
            store.write_cell(order.run_dir, header, [])
        found.append(header)
    return found


def _measured(order: Order, allocation: Allocation, ids: list[str]) -> list[Header]:
    headers: list[Header] = []
    run_allocation(order, allocation, ids, Watchers(cell=headers.append))
    return headers

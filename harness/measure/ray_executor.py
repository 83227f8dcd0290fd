"""Allocations spread over GPUs with Ray: one GPU, one allocation, so speedups stay within a device.

The driver holds the run's lock; workers write their own cells into the shared folder. Ray is imported only here.
"""

from collections.abc import Mapping

from harness.measure.launch import Order, Watchers
from harness.measure.run import run_allocation
from harness.schema.cell import Cell
from harness.schema.header import Header
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
    waiting = [
        remote.remote(order, allocation, [cell.id for cell in chosen])
        for allocation in plan.allocations
        if (chosen := [c for launch in allocation.launches for c in launch.cells if c.id in wanted])
    ]
    while waiting:
        done, waiting = ray.wait(waiting)
        for header in ray.get(done[0]):
            watchers.cell(header)


def _measured(order: Order, allocation: Allocation, ids: list[str]) -> list[Header]:
    headers: list[Header] = []
    run_allocation(order, allocation, ids, Watchers(cell=headers.append))
    return headers

"""Allocations spread over GPUs with Ray: one GPU, one allocation, so speedups stay within a device.

The driver holds the run's lock; workers write their own cells into the run's folder, which must lie on storage that
every node mounts under the same path. A lost allocation is tried again; then it costs the cells that it has not
written, as failure rows, and no other allocation. Ray is imported only here.
"""

from collections.abc import Mapping

from harness.measure.launch import Order, Watchers
from harness.measure.lost_worker import Task, after_loss
from harness.measure.run import run_allocation
from harness.measure.side_by_side import gpus_each, tasks
from harness.schema.cell import Cell
from harness.schema.header import Header
from harness.sweep.plan import Plan
from sglang_specbench.errors import UserError


def run_on_ray(order: Order, plan: Plan, wanted: Mapping[str, Cell], watchers: Watchers) -> None:
    """Measure ``wanted``; cells are reported when their allocation ends. `UserError` without the extra ``ray``."""
    try:
        import ray
    except ImportError:
        raise UserError("--executor ray needs Ray", 'pip install "sglang-specbench[ray]"') from None
    ray.init(ignore_reinit_error=True)
    on_gpus = any(cell.device == "cuda" for cell in wanted.values())
    gpus = gpus_each(order.sweep.server.args) if on_gpus else 0
    remote = ray.remote(num_gpus=gpus, max_retries=0)(_measured)
    sent = {remote.remote(order, task): task for task in tasks(plan, wanted)}
    while sent:
        done, _ = ray.wait(list(sent))
        task = sent.pop(done[0])
        try:
            headers = ray.get(done[0])
        except Exception as error:  # noqa: BLE001 - what a worker raised, or that it is gone
            why = " ".join(str(error).split())[:300] or type(error).__name__
            again, headers = after_loss(order, task, why)
            watchers.note(f"{task.allocation.id}: its Ray worker was lost: {why}")
            if again:
                sent[remote.remote(order, again)] = again
        for header in headers:
            watchers.cell(header)


def _measured(order: Order, task: Task) -> list[Header]:
    headers: list[Header] = []
    run_allocation(order, task.allocation, [cell.id for cell in task.cells], Watchers(cell=headers.append))
    return headers

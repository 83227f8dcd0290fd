"""A plan, carried out: what is missing of it is measured, allocation by allocation.

Failed cells are tried again by the next run of the same command; finished ones are never touched.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from harness.measure.launch import Order, Session, Watchers
from harness.measure.validity import refusals
from harness.prompts.tokenized import Desk
from harness.schema.cell import Cell
from harness.schema.failure import Failure
from harness.serve.remote_server import Elsewhere
from harness.store import run as store
from harness.sweep.plan import Allocation, Plan
from sglang_specbench.errors import UserError

# outcomes that speak of the machine, not of the arm
INFRASTRUCTURE = ("server_died", "oom", "timeout", "infrastructure")


def pending(plan: Plan, run_dir: Path, only: str = "") -> dict[str, Cell]:
    """Cells still to be measured, by id: not ok in ``run_dir``, and with a label that matches the glob ``only``.

    `UserError` if ``only`` matches no cell at all.
    """
    chosen = {cell.id: cell for cell in plan.cells if not only or fnmatchcase(cell.label, only)}
    if not chosen:
        raise UserError(f"--only {only!r} matches no cell", f"labels look like {plan.cells[0].label!r}")
    done = store.finished(run_dir) if run_dir.is_dir() else set()
    return {name: cell for name, cell in chosen.items() if name not in done}


def run_allocation(order: Order, allocation: Allocation, wanted: Iterable[str], watchers: Watchers) -> None:
    """Measure the cells of ``allocation`` whose ids are ``wanted``; each becomes a file."""
    ids = set(wanted)
    desk: Desk | None = None
    for planned in allocation.launches:
        left = [cell for cell in planned.cells if cell.id in ids]
        if left:
            desk = desk or Desk(Path(planned.target_path), order.data_dirs)
            Session(order=order, allocation=allocation, planned=planned, desk=desk, watchers=watchers, left=left).run()


def served_by(url: str, plan: Plan, wanted: Mapping[str, Cell]) -> dict[str, Cell]:
    """Those of ``wanted`` that the running server at ``url`` serves, by its attestation.

    A server without one is taken at the user's word, who must have narrowed ``wanted`` to one launch. `UserError` if
    it cannot be reached, serves none of them, or might be any of several.
    """
    try:
        info = Elsewhere(url).info()
    except Failure as failure:
        raise UserError(f"{url}: {failure.reason}", "is an SGLang 0.5.23 server running there?", exit_code=5) from None
    left = [(launch, [c.id for c in launch.cells if c.id in wanted]) for launch in plan.launches]
    launches = [ids for _, ids in left if ids]
    if info.attestation is None and len(launches) > 1:
        raise UserError(
            f"{url}: the server has no attestation and {len(launches)} launches are missing",
            "name the one that it serves with --only, or start it with the specbench plugin",
        )
    refused = {
        ids[0]: refusals(info, wanted[ids[0]], "", remote=True, window=launch.window) for launch, ids in left if ids
    }
    matching = [cell for ids in launches if not refused[ids[0]] for cell in ids]
    if not matching:
        first, reasons = next(iter(refused.items()))
        raise UserError(
            f"{url}: it serves none of the cells; for {wanted[first].label!r}: {'; '.join(reasons)}",
            "start the server of one of the sweep's launches, or leave --server out",
        )
    return {name: wanted[name] for name in matching}


def exit_code(outcomes: Iterable[str]) -> int:
    """0 all ok; 5 if every cell failed by the machine's fault; 1 if any failed otherwise."""
    seen = Counter(outcomes)
    if set(seen) <= {"ok"}:
        return 0
    return 5 if set(seen) <= set(INFRASTRUCTURE) else 1

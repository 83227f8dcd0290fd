"""`specbench run`: measure what is missing of a sweep, then print what the run says so far."""

import errno
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.commands.plan import show
from harness.measure.launch import Order, Watchers
from harness.measure.progress import Reporter
from harness.measure.run import exit_code, pending, run_allocation, served_by
from harness.measure.side_by_side import gpus_each, places, run_side_by_side
from harness.measure.signals import STOPPED, one_way_to_stop
from harness.schema.cell import Cell
from harness.schema.header import Header
from harness.store import run as store
from harness.store.lock import hold
from harness.sweep import plan as planning
from harness.sweep.plan import Plan
from sglang_specbench.atomic_file import write_text
from sglang_specbench.console import Console
from sglang_specbench.device import require
from sglang_specbench.errors import UserError

RUNS = Path("results/runs")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def run(
    sweep: Annotated[str, typer.Argument(help="Sweep file, or the name of a shipped one (demo, paper_main, ...).")],
    out: Annotated[Path | None, typer.Option(help="Run folder; default results/runs/NAME.")] = None,
    only: Annotated[
        str, typer.Option(help="Only cells whose label matches this glob, e.g. '*/lilicorr gsm8k *'.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be measured; start nothing.")] = False,
    server: Annotated[str, typer.Option(help="URL of a running server to measure instead of starting any.")] = "",
    executor: Annotated[
        Literal["local", "ray"], typer.Option(help="ray: one allocation a GPU, over several machines.")
    ] = "local",
    devices: Annotated[
        str,
        typer.Option(help="GPUs of this machine, e.g. 0,1,2: one allocation each, side by side. Default: all of them."),
    ] = "",
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(help="What to serve on; auto: as the sweep says, or what is here."),
    ] = "auto",
    data_dir: Annotated[list[Path] | None, typer.Option(help="Folder with prompt sets; may be repeated.")] = None,
    save_output: Annotated[bool, typer.Option("--save-output", help="Keep output ids and text in the rows.")] = False,
) -> None:
    """Measure what is missing of a sweep; resumes where it was stopped.

    Exit code 0: every cell is ok. 1: some failed, or greedy outputs differ from AR's in float32. 5: all failed by the
    machine's fault (server died, out of memory, time-out, disk full). 130: stopped.
    """
    console = Console(goes_on=True)
    if not (dry_run or server):
        require(device)
    loaded, plan = planning.make(sweep, data_dir or [], "" if device == "auto" else device)
    if devices and (executor == "ray" or server):
        raise UserError("run: --devices is for servers that are started here", "leave out --server and --executor ray")
    if not (dry_run or server or executor == "ray"):  # once, and not by every server that dies of it
        require(plan.cells[0].device, f"{loaded.where}: server.device:")
    order = Order(
        run_dir=out or RUNS / loaded.name,
        sweep=loaded,
        data_dirs=tuple(data_dir or ()),
        url=server,
        keep_output=save_output,
    )
    wanted = pending(plan, order.run_dir, only)
    if order.run_dir.is_dir():
        store.check_alike(store.header_files(order.run_dir), plan.cells)  # before anything is measured into it
    if dry_run:
        show(plan, console)
        for cell in wanted.values():
            console.print(f"{cell.id} {cell.label}", soft_wrap=True)
        console.print(f"{len(wanted)} of {len(plan.cells)} cells would be measured into {order.run_dir}")
        return
    for note in plan.notes:
        console.print(f"note: {note}", soft_wrap=True)
    if wanted:
        _require(plan, server)
        wanted = served_by(server, plan, wanted) if server else wanted
    try:
        with one_way_to_stop():
            outcomes = carry_out(order, plan, wanted, executor, console, devices)
    except KeyboardInterrupt:
        console.print("stopped; finished cells are kept: run the same command to go on")
        raise typer.Exit(STOPPED) from None
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise UserError(f"{order.run_dir}: {error.strerror}", "make room, then run it again", exit_code=5) from None
    code = max(exit_code(outcomes), _report(order.run_dir, console))
    raise typer.Exit(code)


def _require(plan: Plan, server: str) -> None:
    plan.require_models()
    if not server and importlib.util.find_spec("sglang") is None:
        raise UserError("run needs SGLang", 'pip install "sglang-specbench[serve]"')


def carry_out(
    order: Order, plan: Plan, wanted: Mapping[str, Cell], executor: str, console: Console, devices: str = ""
) -> list[str]:
    """Measure ``wanted``; the outcomes of the cells as they ended. ``devices``: what `places` takes."""
    from harness.report.so_far import SoFar

    so_far = SoFar(order.run_dir, wanted.values(), console)
    at = [] if order.url or executor == "ray" else _places(order, plan, devices)
    outcomes: list[str] = []
    total = sum(cell.prompts for cell in wanted.values())
    with hold(order.run_dir) as leftovers, Reporter(console, total, len(wanted)) as reporter:
        if leftovers:
            console.print(f"ended {len(leftovers)} server processes of a killed run")
        write_text(order.run_dir / "sweep.toml", order.sweep.source)
        planning.write(plan, order.run_dir)

        def cell_done(header: Header) -> None:
            outcomes.append(header.outcome)
            reporter.cell(header)
            so_far.cell(header)

        watchers = Watchers(note=reporter.note, conversation=reporter.conversation, cell=cell_done)
        if executor == "ray":
            from harness.measure.ray_executor import run_on_ray

            run_on_ray(order, plan, wanted, watchers)
        elif devices or len(at) > 1:  # one that is named need not be the first
            run_side_by_side(order, plan, wanted, watchers, at)
        else:
            for allocation in plan.allocations:
                run_allocation(order, allocation, wanted, watchers)
    return outcomes


def _places(order: Order, plan: Plan, devices: str) -> list[str]:
    """Where allocations run at once: no more places than allocations."""
    found = places(devices, plan.cells[0].device, gpus_each(order.sweep.server.args))
    return found[: len(plan.allocations)]


def _report(run_dir: Path, console: Console) -> int:
    """Print the first table and the answer, write the report; 1 if outputs that must be equal are not, else 0."""
    from harness.load_results import estimated, frames_of
    from harness.report.end_of_run import tell
    from harness.tables.run_summary import report

    frames = frames_of([run_dir])
    results = estimated(frames, [run_dir], str(run_dir))
    code = report(run_dir, results, frames, console)
    tell(run_dir, results, frames, console)
    return code

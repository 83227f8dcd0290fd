"""`specbench serve`: the server that a run would start, for as long as somebody needs it."""

import os
import shlex
import tempfile
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from harness.measure.launch import on_this_machine
from harness.measure.run import INFRASTRUCTURE
from harness.measure.signals import STOPPED, one_way_to_stop
from harness.measure.validity import refusals
from harness.schema.failure import Failure
from harness.serve.server import Server, free_port
from harness.store.lock import RECORDS
from harness.sweep.one_launch import choose
from harness.sweep.plan import PlannedLaunch
from harness.sweep.sweep import AR
from sglang_specbench import toolkit
from sglang_specbench.console import Console
from sglang_specbench.device import require
from sglang_specbench.errors import UserError
from sglang_specbench.launch import Launch

WATCH_S = 1.0


def serve(
    target: Annotated[str, typer.Argument(help="A model (folder, mini:target, hub id), or a sweep: file or name.")],
    arm: Annotated[str, typer.Option(help="Which arm; of a target alone only one without a drafter.")] = AR,
    only: Annotated[str, typer.Option(help="Of a sweep: cells whose label matches this glob.")] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0: a free one.")] = 0,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Of a target alone: requests at once; default: 64, on a CPU 8.")
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Print the command line; start nothing.")] = False,
) -> None:
    """Start the server that a run would start, say its URL, and end it with Ctrl-C.

    The URL stands alone on stdout once the server answers and has proved what it runs. Exit code 0: ended by Ctrl-C or
    SIGTERM. 1: it is not what the arm asks for. 5: it did not come up, or died.
    """
    console = Console(stderr=True)
    chosen = choose(target, arm, only, concurrency)
    planned = chosen.launch
    if chosen.others:
        label = planned.cells[0].label
        console.print(
            f"note: {1 + chosen.others} unlike servers of {arm}; this one is of {label} (--only chooses)",
            soft_wrap=True,
        )
    launch = on_this_machine(planned, port or free_port())
    if show:
        typer.echo(_command(launch))
        return
    require(launch.device, f"{chosen.sweep.where}: server.device:")
    ready = False
    try:
        with one_way_to_stop():
            folder = Path(tempfile.mkdtemp(prefix="specbench-serve-"))
            log = folder / "server.log"
            console.print(f"starting {planned.arm}/{planned.proposal} on {launch.device} (log: {log})", soft_wrap=True)
            with Server(launch, log, folder / RECORDS) as server:
                server.wait_ready(chosen.sweep.server.start_timeout_s)
                _admit(server, planned)
                ready = True
                typer.echo(server.url)
                console.print("it answers; Ctrl-C ends it")
                _watch(server)
    except KeyboardInterrupt:
        console.print("the server has ended")
        raise typer.Exit(0 if ready else STOPPED) from None
    except Failure as failure:
        code = 5 if failure.outcome in INFRASTRUCTURE else 1
        raise UserError(f"serve: {failure}", f"its log: {log}", exit_code=code) from None


def _command(launch: Launch) -> str:
    """For a shell: the variables that it sets, then ``python``."""
    base = toolkit.environment(os.environ) if launch.device == "cuda" else dict(os.environ)
    changed = {k: v for k, v in launch.environment(base).items() if k in launch.env or os.environ.get(k) != v}
    variables = (f"{name}={shlex.quote(value)}" for name, value in changed.items())
    return " ".join([*variables, "python", "-P", *map(shlex.quote, launch.argv)])


def _admit(server: Server, planned: PlannedLaunch) -> None:
    """`Failure` unless a run would measure on it."""
    if found := refusals(server.info(), planned.cells[0], server.text(), remote=False, window=planned.window):
        server.give_up()
        raise Failure("not_attested", "; ".join(found))


def _watch(server: Server) -> NoReturn:
    while True:
        time.sleep(WATCH_S)
        if failure := server.failure():
            server.give_up()
            raise failure

"""`specbench plan`: what a sweep means on this machine, before anything is started."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from harness.sweep.plan import Allocation, Plan, PlannedLaunch, make
from sglang_specbench.arms import WINDOW, get_arm
from sglang_specbench.checkpoint import check_config
from sglang_specbench.console import Console
from sglang_specbench.device import detect_device
from sglang_specbench.errors import UserError
from sglang_specbench.launch import STAND_IN, Launch
from sglang_specbench.models import config_folder
from sglang_specbench.weight_headers import faults

PREFLIGHT = "sglang_specbench.serving.preflight"


def plan(
    sweep: Annotated[str, typer.Argument(help="Sweep file, or the name of a shipped one (demo, paper_main, ...).")],
    data_dir: Annotated[list[Path] | None, typer.Option(help="Folder with prompt sets; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole plan as JSON.")] = False,
    preflight: Annotated[
        bool,
        typer.Option(
            help="Let SGLang check every launch's arguments, and weights that are here by their headers; needs no GPU."
        ),
    ] = False,
    budget: Annotated[bool, typer.Option("--budget", help="Hours, memory and disk on 1, 2, 4 and 8 devices.")] = False,
    run: Annotated[str, typer.Option(help="With --budget: run folder, or 'paper', whose times count.")] = "",
) -> None:
    """Expand a sweep into its cells and launches; --preflight checks their server arguments."""
    if run and not budget:
        raise UserError("plan: --run goes with --budget", "add --budget, or leave it out")
    _, made = make(sweep, data_dir or [])
    if as_json:
        typer.echo(json.dumps(made.to_json(), indent=1))
    else:
        show(made, Console())
    if budget:
        from harness.commands.plan_budget import show_budget  # statistics: a second of start-up

        show_budget(made, run, Console())
    if preflight:
        _preflight(made)


def show(made: Plan, console: Console) -> None:
    """Counts, one line per allocation, what is missing with the command that downloads it, and the notes."""
    console.print(
        f"{made.name}: {_count(len(made.cells), 'cell')} in {_count(len(made.launches), 'server launch')}, "
        f"{_count(len(made.allocations), 'allocation')}; "
        f"about {_count(sum(cell.prompts for cell in made.cells), 'prompt')} to answer"
    )
    console.print(_table(made.allocations))
    for name, reason in made.missing_sets.items():
        count = sum(cell.prompt_set == name for cell in made.cells)
        console.print(
            f"missing set: {reason}; {_count(count, 'cell')} would be recorded as missing_set", soft_wrap=True
        )
    for model in made.missing_models:
        console.print(f"missing model: {model.source} (to get it: {model.fetch})", soft_wrap=True)
    for note in made.notes:
        console.print(f"note: {note}", soft_wrap=True)


def _count(number: int, noun: str) -> str:
    plural = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{plural}"


def _table(allocations: tuple[Allocation, ...]) -> Table:
    table = Table("allocation", "launches in order", "cells", box=None)
    for allocation in allocations:
        order = " ".join(f"{launch.arm}/{launch.proposal}{_width(launch)}" for launch in allocation.launches)
        table.add_row(allocation.id, order.replace("/none", ""), str(sum(len(x.cells) for x in allocation.launches)))
    return table


def _width(launch: PlannedLaunch) -> str:
    """``:7``, drafted tokens a block, where they are not the paper's."""
    return f":{launch.window - 1}" if launch.window != WINDOW else ""


def _preflight(made: Plan) -> None:
    """Ask SGLang's own argument pipeline about every launch, in a process of its own: it imports torch.

    Configs are enough for it. Weights that are here are held against them by their headers.
    """
    servers = {(s.arm, s.proposal, s.target): s for s in (_configured(launch) for launch in made.launches)}
    asked = json.dumps([asdict(server) for server in servers.values()])
    command = [sys.executable, "-m", PREFLIGHT]
    done = subprocess.run(command, input=asked, env=_environment(), capture_output=True, text=True, check=False)
    if any(f"No module named '{name}'" in done.stderr + done.stdout for name in ("sglang", "torch")):
        raise UserError("preflight needs SGLang", 'pip install "sglang-specbench[serve]"')
    if done.returncode:
        raise UserError(
            f"{PREFLIGHT} failed: {done.stderr.strip().splitlines()[-1]}", "run it by hand to see all of it"
        )
    verdicts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]  # SGLang prints, too
    for verdict in verdicts:
        state = "ok" if verdict["ok"] else " ".join("; ".join(verdict["reasons"]).split())
        typer.echo(f"preflight {verdict['arm']}/{verdict['proposal']}: {state}")
    folders = dict.fromkeys(path for s in servers.values() for path in (s.target, s.draft) if path)
    sound = [_weights(Path(folder)) for folder in folders]
    typer.echo(
        "not checked: memory, kernels, what the weights are worth, and tensors beyond those that every model has"
    )
    if not all([*sound, *(verdict["ok"] for verdict in verdicts)]):
        raise typer.Exit(2)


def _configured(launch: PlannedLaunch) -> Launch:
    """The server of ``launch``, its models by folders that hold their configs."""
    server = launch.server(port=30000)
    folders = [str(config_folder(path, "plan --preflight")) if path else None for path in (server.target, server.draft)]
    if folders[1]:
        check_config(Path(folders[1]), get_arm(server.arm), Path(folders[0] or ""))
    return replace(server, target=folders[0] or "", draft=folders[1])


def _weights(folder: Path) -> bool:
    """Say what the headers of its weights are; False if they do not fit its config."""
    if not any(folder.glob("*.safetensors")):
        typer.echo(f"weights of {folder}: not here, so not checked")
        return True
    found = faults(folder)
    typer.echo(f"weights of {folder}: {'; '.join(found) or 'names and shapes fit config.json'}")
    return not found


def _environment() -> dict[str, str]:
    """Where no GPU is, SGLang's imports need the stand-in for its CUDA wheel; the verdict needs no kernel."""
    if detect_device() == "cuda":
        return dict(os.environ)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(STAND_IN), os.environ.get("PYTHONPATH", "")])}

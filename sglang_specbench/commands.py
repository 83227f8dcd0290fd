"""The commands ``specbench arms`` and ``specbench doctor``. Both work with the base alone installed."""

import json
import os
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.table import Column, Table

from sglang_specbench import toolkit, width
from sglang_specbench.arms import ARMS, Arm, Proposal, get_arm
from sglang_specbench.console import Console
from sglang_specbench.machine import DISK_GB, Machine, inspect_machine, why_not

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable, to stdout.")]


def arms(
    name: Annotated[str | None, typer.Argument(help="Show all of one arm: flags, environment, proof.")] = None,
    as_json: AsJson = False,
) -> None:
    """The arms: flags, proof demanded, proposals, known approximations; and which run on this machine."""
    chosen = ARMS.values() if name is None else [get_arm(name, "arms")]
    machine = inspect_machine()
    if as_json:
        print(json.dumps([{**asdict(arm), "why_not": why_not(arm, machine)} for arm in chosen], indent=1))
    elif name is None:
        Console().print(_overview(machine))
    else:
        Console().print(_details(ARMS[name], machine))


def doctor(
    as_json: AsJson = False,
    build: Annotated[
        bool, typer.Option("--build", help="Also build the CUDA module that DFLASH servers build when they start.")
    ] = False,
) -> None:
    """Is this machine fit, what runs here and why not; exit code 1 if nothing can be served here."""
    machine = inspect_machine()
    if build and not machine.problems:
        made = toolkit.build(os.environ, here=bool(machine.gpus))
        wrong = () if made == "built" else (f"the CUDA module of DFLASH servers: {made}",)
        machine = replace(machine, toolkit=f"{machine.toolkit or toolkit.report(os.environ)}: {made}", problems=wrong)
    if as_json:
        print(json.dumps(asdict(machine), indent=1))
    else:
        _report(machine)
    raise typer.Exit(1 if machine.problems else 0)


def _overview(machine: Machine) -> Table:
    runs_here = Column("runs here", overflow="fold")  # the reason ends in a command to copy
    table = Table("arm", "at T>0", runs_here, "known approximations", caption="all of one arm: specbench arms NAME")
    for arm in ARMS.values():
        reason = why_not(arm, machine)
        table.add_row(
            arm.name,
            arm.proposal(1.0),
            f"no: {reason}" if reason else "yes",
            "; ".join(arm.approximations) or "none",
        )
    return table


def _details(arm: Arm, machine: Machine) -> Table:
    table = Table(show_header=False, title=f"{arm.name}: {arm.title}")
    table.add_row("checkpoint", f"{arm.checkpoint or 'none'} ({', '.join(arm.architectures) or 'any architecture'})")
    algorithm = ("--speculative-algorithm", arm.algorithm) if arm.algorithm else ()
    if arm.head:
        table.add_row("width", f"the checkpoint's block_size, stated by {width.FLAGS[arm.algorithm]}")
    table.add_row("flags", " ".join((*algorithm, *arm.flags)) or "none")
    proposals: tuple[Proposal, ...] = ("argmax", "sampled") if arm.sampling == "sampled" else ("argmax",)
    for proposal in proposals if arm.algorithm else ():
        env = " ".join(f"{k}={v}" for k, v in arm.environment(proposal).items())
        table.add_row(f"environment ({proposal})", env or "none")
        table.add_row(f"log proof ({proposal})", "\n".join(arm.proof(proposal)) or "none")
    table.add_row("patches", ", ".join(arm.patches) or "none")
    table.add_row("approximations", "; ".join(arm.approximations) or "none")
    table.add_row("runs here", why_not(arm, machine) or "yes")
    return table


def _report(machine: Machine) -> None:
    table = Table(show_header=False)
    table.add_row("Python", f"{machine.python} on {machine.platform}")
    for name, version in machine.versions.items():
        table.add_row(name, version or "not installed")
    for name, folder in machine.locations.items():
        table.add_row(f"import {name}", folder or "not found")
    table.add_row("SGLang plugin", machine.plugin or "not found")
    table.add_row(
        "GPUs", "\n".join(machine.gpus) or "none: arms are served on the CPU, in float32, without CUDA graphs"
    )
    if machine.toolkit:
        table.add_row("CUDA toolkit", machine.toolkit)
    table.add_row("CPU", f"{machine.cores} cores, {', '.join(machine.cpu_flags) or 'no AVX2'}")
    low = f" (installing SGLang needs {DISK_GB})" if machine.free_disk_gb < DISK_GB else ""
    table.add_row("free disk", f"{machine.free_disk_gb} GB{low}")
    console = Console()
    console.print(table)
    for problem in machine.problems:
        console.print(f"not fit for serving: {problem}", style="red")
    if not machine.problems:
        here = sum(not why_not(arm, machine) for arm in ARMS.values())
        console.print(f"fit for serving: {here} of {len(ARMS)} arms run here (specbench arms says which)")
    elif machine.versions["sglang"] is None:
        console.print("planning, tables, plots and gates work without it")

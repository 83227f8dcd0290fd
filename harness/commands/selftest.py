"""`specbench selftest`: does all of it work on this machine; ends with one page that can be pasted into an issue.

No second implementation: the shipped sweep ``selftest`` is measured as `specbench run` measures it, once in float32 and
once in bfloat16, and two arms, one for each rule of verification, are audited as `specbench audit` does it.
"""

import importlib.util
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from harness.audit import certificate_file, subjects
from harness.audit.reference import Design
from harness.commands.audit import EXIT, Auditor
from harness.commands.run import carry_out
from harness.load_results import frames_of
from harness.measure.launch import Order
from harness.measure.progress import bar
from harness.measure.run import exit_code, pending
from harness.measure.signals import STOPPED, one_way_to_stop
from harness.report.selftest_page import Measured, page
from harness.stats.greedy_match import equalities
from harness.store import run as store
from harness.store.lock import hold
from harness.sweep.plan import expand
from harness.sweep.resolve import resolve
from harness.sweep.sweep import AR, Sweep, load
from sglang_specbench.arms import ARMS
from sglang_specbench.atomic_file import make_folder, write_text
from sglang_specbench.console import Console
from sglang_specbench.device import detect_device, require
from sglang_specbench.errors import UserError
from sglang_specbench.machine import Machine, inspect_machine, why_not

SWEEP = "selftest"
AUDITED = ("dflash", "lilicorr")  # argmax and sampled proposals at temperature 1: the two rules of verification
SAMPLES = 3000  # the fewest with which an audit of the mini models can pass: it would see a bias of a tenth
Dtype = Literal["float32", "bfloat16"]
Device = Literal["cpu", "cuda"]


def selftest(
    out: Annotated[Path, typer.Option(help="Folder of the runs, certificates and the page.")] = Path("out/selftest"),
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="What to serve on; auto: what is here.")
    ] = "auto",
) -> None:
    """Does every arm run here, is it what it says, and is it exact; about ten minutes on two idle CPU cores.

    Goes on where it was stopped. Exit code 0: all is well; otherwise the worst of those of run and audit.
    """
    began, console, machine = time.monotonic(), Console(goes_on=True), inspect_machine()
    require(device)
    if machine.problems:
        raise UserError(f"selftest: {machine.problems[0]}", "specbench doctor says more")
    if importlib.util.find_spec("sglang") is None:
        raise UserError("selftest needs SGLang", 'pip install "sglang-specbench[serve]"')
    make_folder(out, "selftest: --out")
    where: Device = cast(Device, detect_device()) if device == "auto" else device
    sweep = _with_plain_arms(load(SWEEP), where, machine)
    try:
        with one_way_to_stop():
            measured = [_measure(sweep, dtype, where, out / dtype, console) for dtype in ("float32", "bfloat16")]
            verdicts = _audit(sweep, where, out / "certificates", console)
    except KeyboardInterrupt:
        console.print("stopped: run the same command to go on")
        raise typer.Exit(STOPPED) from None
    text = page(machine, where, measured, certificate_file.load_all(out / "certificates"), time.monotonic() - began)
    write_text(out / "selftest.md", text)
    typer.echo(text)
    codes = [exit_code(m.outcomes) or int(any(e.broken for e in m.equal)) for m in measured]
    raise typer.Exit(max(*codes, *(EXIT[verdict] for verdict in verdicts)))


def _with_plain_arms(sweep: Sweep, device: str, machine: Machine) -> Sweep:
    """``sweep`` with the arms that need no checkpoint and run on ``device``, which no list of a file can know."""
    machine = machine if device == "cuda" else replace(machine, gpus=())
    plain = [a.name for a in ARMS.values() if a.algorithm and not a.checkpoint and not why_not(a, machine)]
    panels = tuple(replace(panel, arms=(*panel.arms, *plain)) for panel in sweep.panel)
    return replace(sweep, panel=panels)


def _measure(sweep: Sweep, dtype: Dtype, device: str, run_dir: Path, console: Console) -> Measured:
    """Every arm in float32; in bfloat16, sampling, one of each drafter, or on a CPU of each rule of verification."""
    if dtype == "bfloat16":
        first = {ARMS[name].checkpoint: name for panel in sweep.panel for name in reversed(panel.arms)}
        kept = first.values() if device == "cuda" else (AR, *AUDITED)
        panels = [replace(p, arms=tuple(a for a in p.arms if a in kept)) for p in sweep.panel]
        sweep = replace(sweep, panel=tuple(replace(p, temperatures=(1.0,)) for p in panels))
    sweep = replace(sweep, name=f"{sweep.name}-{dtype}", server=replace(sweep.server, dtype=dtype))
    plan = expand(sweep, resolve(sweep, device=device))
    wanted = pending(plan, run_dir) if plan.cells else {}
    console.print(f"{dtype}: {len(plan.launches)} servers, {len(wanted)} of {len(plan.cells)} cells to measure")
    if wanted:
        carry_out(Order(run_dir=run_dir, sweep=sweep), plan, wanted, "local", console)
    frames = frames_of([run_dir])
    return Measured(
        dtype=dtype,
        headers=tuple(store.headers(run_dir).values()),
        equal=tuple(equalities(frames.cells, frames.rows)),
    )


def _audit(sweep: Sweep, device: Device, out: Path, console: Console) -> list[str]:
    sweep = replace(sweep, server=replace(sweep.server, device=device))
    subject = subjects.subject(sweep, "mini", subjects.here(out / "logs"), "mini", remote=False)
    drafts = subjects.arms(sweep, "mini", AUDITED, device)
    with hold(out / "logs"), bar(console) as shown:
        auditor = Auditor(Design(samples=SAMPLES), out, again=False, console=console, bar=shown)
        prompts, skipped = subjects.prompt_ids(subject)
        return ["pass", *auditor.target(replace(subject, skipped=skipped), prompts, drafts)]

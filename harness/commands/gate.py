"""``specbench gate``: candidate against baseline, one verdict, one exit code, every form that a CI system reads."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError

if TYPE_CHECKING:
    from harness.gate.verdict import GateOutcome, Rules
    from harness.schema.cell import Cell
    from harness.stats.results import Results

BASELINE = Path("results/baseline.json")
LOOKS = 4  # planned looks with --until-decided: the run as it is, and up to three more repeats


def gate(
    run: Annotated[Path, typer.Argument(help="Run folder of the candidate.")],
    baseline: Annotated[Path, typer.Option(help="Baseline file, or a run folder to compare with.")] = BASELINE,
    arm: Annotated[
        list[str] | None, typer.Option(help="Judge only this arm, beside AR (repeat the option); default: all.")
    ] = None,
    metric: Annotated[
        Literal["both", "tau", "throughput"], typer.Option(help="tau alone where speed means nothing: shared runners.")
    ] = "both",
    alpha: Annotated[float, typer.Option(help="Odds of calling an unchanged candidate a regression.")] = 0.01,
    tau_margin: Annotated[float, typer.Option(help="Smallest relative drop of tau that matters.")] = 0.01,
    throughput_margin: Annotated[float, typer.Option(help="Smallest relative drop of throughput that matters.")] = 0.03,
    until_decided: Annotated[bool, typer.Option("--until-decided", help="Measure more repeats while open.")] = False,
    budget_minutes: Annotated[float, typer.Option(help="Time for more repeats.")] = 30.0,
    history: Annotated[Path | None, typer.Option(help="Append one line for this run to this file.")] = None,
    summary: Annotated[Path | None, typer.Option(help="Append the Markdown table to this file.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write everything as JSON.")] = None,
) -> None:
    """Judge a run: exit 0 ok, 1 regression, 3 inconclusive, 4 invalid, 5 infrastructure."""
    from harness.gate import baseline as accepted
    from harness.gate import history as lines
    from harness.gate import record, report
    from harness.gate.verdict import METRICS, Rules
    from harness.load_results import load_results

    _require_between("--alpha", alpha, 0.5)
    _require_between("--tau-margin", tau_margin, 1)
    _require_between("--throughput-margin", throughput_margin, 1)
    against = baseline if baseline.is_dir() else accepted.load(baseline)[1]
    looks = LOOKS if until_decided else 1
    rules = Rules(
        metrics=METRICS if metric == "both" else (metric,),
        alpha=alpha,
        tau_margin=tau_margin,
        throughput_margin=throughput_margin,
        looks=looks,
    )
    decision = Decision(run, load_results(str(against)), rules, arm or [])
    outcome = decision.judge()
    if note := decision.beforehand():
        typer.echo(f"note: {note}", err=True)
    outcome = decision.until(outcome, budget_minutes)
    text = report.markdown(outcome, against.name, run.name)
    typer.echo(text)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        typer.echo("\n".join(report.annotations(outcome)))
    if summary:
        with summary.open("a", encoding="utf-8") as handle:
            handle.write(text)
    for path, content in ((junit, report.junit(outcome)), (json, report.machine(outcome))):
        if path:
            path.write_text(content, encoding="utf-8")
    if history and outcome.judgements:
        lines.append(history, record.entry(run.name, load_results(str(run)), outcome.verdict, decision.accepted))
    raise typer.Exit(outcome.exit_code)


def _require_between(option: str, value: float, below: float) -> None:
    if not 0 < value < below:  # nor nan
        raise UserError(f"gate: {option}: {value:g} is out of range", f"write more than 0 and less than {below:g}")


@dataclass(frozen=True)
class Decision:
    """``run`` against ``accepted`` under ``rules``, judged for ``arms`` ([]: all)."""

    run: Path
    accepted: "Results"
    rules: "Rules"
    arms: Sequence[str]

    def __post_init__(self) -> None:
        for name in self.arms:
            if name not in self.accepted.arms():
                raise UserError(f"gate: --arm: the baseline has no arm {name!r}", near_name(name, self.accepted.arms()))

    def beforehand(self) -> str:
        """What cannot be decided however good the run is, and what helps; "" if all can."""
        from harness.gate.troubles import ONE_REPEAT, repeated

        several = repeated(self.accepted.planned or ()) or repeated(self._planned())
        return "" if several or "throughput" not in self.rules.metrics else ONE_REPEAT

    def _planned(self) -> "tuple[Cell, ...]":
        from harness.sweep import plan

        return plan.read(self.run).cells if (self.run / "plan.json").is_file() else ()

    def until(self, outcome: "GateOutcome", budget_minutes: float) -> "GateOutcome":
        """While the verdict is open, looks are left and time too, measure one more repeat and judge again."""
        deadline = time.monotonic() + 60 * budget_minutes
        for _ in range(self.rules.looks - 1):
            if outcome.verdict != "inconclusive" or time.monotonic() > deadline:
                break
            _repeat(self.run)
            outcome = self.judge()
        return outcome

    def judge(self) -> "GateOutcome":
        """The verdict on what is measured by now."""
        from harness.gate.troubles import INVALID, Trouble
        from harness.gate.verdict import GateOutcome
        from harness.gate.verdict import gate as judge
        from harness.load_results import load_results
        from harness.stats.chosen import only
        from harness.store.run import cell_files

        if self.run.is_dir() and not cell_files(self.run):
            nothing = Trouble(INVALID, f"candidate: no cells in {self.run}: nothing was measured")
            return GateOutcome(verdict="invalid", judgements=(), troubles=(nothing,))
        accepted, found = self.accepted, load_results(str(self.run))
        if self.arms:
            accepted, found = (only(results, {"ar", *self.arms}) for results in (accepted, found))
        return judge(accepted, found, self.rules)


def _repeat(run: Path) -> None:
    """Measure one more repeat of the run's own sweep, with the command that measured it."""
    from harness.sweep.sweep import load

    sweep = load(run / "sweep.toml")
    (run / "sweep.toml").write_text(with_repeats(sweep.source, sweep.repeats + 1), encoding="utf-8")
    code = "from sglang_specbench.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, "run", str(run / "sweep.toml"), "--out", str(run)], check=False)


def with_repeats(source: str, repeats: int) -> str:
    """The sweep text with its top-level key ``repeats`` set."""
    line = f"repeats = {repeats}"
    changed, found = re.subn(r"(?m)^repeats\s*=.*$", line, source, count=1)
    return changed if found else f"{line}\n{source}"

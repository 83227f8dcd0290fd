"""What a training run says while it runs: one JSON line per arm and report, TensorBoard if installed, and a live bar.

The JSONL file is the record (TensorBoard and the bar show the same numbers). Rows after the step a run resumes from are
dropped, so that no step is in the record twice.
"""

import json
import math
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sglang_specbench.console import Console
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import json_lines
from sglang_specbench.growing_file import cut_torn_line

METRICS = "metrics.jsonl"
REMEDY = "remove that line, or train into a new folder"


class Reporter:
    """Use as a context; ``report`` takes plain numbers. ``silent`` is for every rank but the first."""

    def __init__(self, run: Path, step: int, steps: int, *, silent: bool) -> None:
        self.path, self.silent = run / METRICS, silent
        self.board = None if silent else _board(run)
        said = TextColumn("{task.fields[said]}", markup=False)
        self.step, self.steps = step, steps
        columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), said
        self.bar = Progress(*columns, console=Console(goes_on=True), disable=silent)
        self.task = self.bar.add_task("", total=steps, completed=step, said="")
        if not silent:
            _drop_after(self.path, step)

    def __enter__(self) -> "Reporter":
        if not self.silent:
            print(f"training: {self.steps - self.step:,} of {self.steps:,} steps to do", file=sys.stderr)
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
        if self.board:
            self.board.close()

    def first_step(self, seconds: float) -> None:
        """Say at once how long it will take: the first step is slower than those behind it, if anything."""
        if not self.silent:
            left = timedelta(seconds=round(seconds * (self.steps - self.step - 1)))
            print(f"training: the first step took {seconds:.1f} s: at most about {left} left", file=sys.stderr)

    def advance(self, step: int, losses: dict[str, float]) -> None:
        """Move the bar to ``step`` and show each arm's loss."""
        said = "  ".join(f"{arm} {loss:.3f}" for arm, loss in losses.items())
        self.bar.update(self.task, completed=step, said=said)

    def report(self, step: int, arm: str, kind: str, values: dict[str, float]) -> None:
        """Record ``values`` of ``arm`` after ``step`` steps; ``kind`` is "train" or "held_out"."""
        if self.silent:
            return
        numbers = {k: round(v, 5) if math.isfinite(v) else None for k, v in values.items()}  # JSON has no NaN
        row = {"step": step, "arm": arm, "kind": kind, **numbers}
        with self.path.open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(row) + "\n")
        if self.board:
            for name, value in values.items():
                self.board.add_scalar(f"{kind}/{name}/{arm}", value, step)


def _board(run: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # an optional viewer: the JSONL record is complete without it
        return None
    return SummaryWriter(run / "tensorboard")


def _drop_after(path: Path, step: int) -> None:
    """Keep the rows up to ``step``; `UserError` naming the line that is none."""
    if not path.is_file():
        return
    cut_torn_line(path)
    kept = [row for where, row in json_lines(path, REMEDY) if _step(row, where) <= step]
    part = path.with_suffix(".part")
    part.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    part.replace(path)


def _step(row: dict[str, Any], where: str) -> int:
    step = row.get("step")
    if not isinstance(step, int):
        raise UserError(f"{where}: step: expected a whole number, got {step!r:.80}", REMEDY)
    return step

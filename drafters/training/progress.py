"""What a training run says while it runs: one JSON line per arm and report, TensorBoard if installed, and a live bar.

The JSONL file is the record (TensorBoard and the bar show the same numbers). Rows after the step a run resumes from are
dropped, so that no step is in the record twice.
"""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

METRICS = "metrics.jsonl"


class Reporter:
    """Use as a context; ``report`` takes plain numbers. ``silent`` is for every rank but the first."""

    def __init__(self, run: Path, step: int, steps: int, *, silent: bool) -> None:
        self.path, self.silent = run / METRICS, silent
        self.board = None if silent else _board(run)
        times = TimeElapsedColumn(), TimeRemainingColumn()
        said = TextColumn("{task.fields[said]}", markup=False)
        self.step, self.steps = step, steps
        self.bar = Progress(BarColumn(), MofNCompleteColumn(), *times, said, disable=silent)
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
        row = {"step": step, "arm": arm, "kind": kind, **{k: round(v, 5) for k, v in values.items()}}
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
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        path.write_text("".join(kept), encoding="utf-8")

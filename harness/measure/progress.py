"""What a person sees while a sweep runs: a bar with the time left on a terminal, one line per cell anywhere."""

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from harness.schema.header import Header
from sglang_specbench.console import Console


def bar(console: Console) -> Progress:
    """A bar with counts and the time left; nothing where ``console`` is not a terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left", markup=False),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


class Reporter:
    """Counts conversations towards ``total``, cells towards ``cells``. Use as a context manager."""

    def __init__(self, console: Console, total: int, cells: int) -> None:
        self._console = console
        self._cells, self._done = cells, 0
        self._bar = bar(console)
        self._task = self._bar.add_task("starting", total=total)
        self._expected = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """A line of its own, and the bar's label."""
        self._bar.update(self._task, description=text)
        if not self._console.is_terminal:
            self._console.print(text, soft_wrap=True)

    def conversation(self) -> None:
        """One more conversation has ended."""
        self._expected += 1
        self._bar.advance(self._task)

    def cell(self, header: Header) -> None:
        """A cell is written; conversations that it did not reach are taken off the bar."""
        self._done += 1
        self._bar.advance(self._task, header.cell.prompts - self._expected)
        self._expected = 0
        style = "green" if header.outcome == "ok" else "red"
        detail = f"{header.wall_s:.1f} s" if header.wall_s is not None else header.reason
        line = Text.assemble(
            f"[{self._done}/{self._cells}] ", (header.outcome, style), f" {header.cell.label}: {detail}"
        )
        self._console.print(line, soft_wrap=True)

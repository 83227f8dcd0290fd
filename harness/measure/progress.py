"""What a person sees while a sweep runs: a bar with the time left on a terminal, one line per cell anywhere."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from harness.schema.header import Header


def bar(console: Console) -> Progress:
    """A bar with counts and the time left; nothing where ``console`` is not a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
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
            self._console.print(text, soft_wrap=True, highlight=False)

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
        line = f"[{self._done}/{self._cells}] [{style}]{header.outcome}[/] {header.cell.label}: "
        self._console.print(line, end="", soft_wrap=True, highlight=False)
        self._console.print(detail, soft_wrap=True, highlight=False, markup=False)

"""A table as data: what stands in each cell, before any format.

Numbers stay numbers (`Estimate`) until ``render``; a hole says why it is one. Column groups, row sections and marks are
enough for every published layout.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from harness.stats.estimate import Estimate, Missing
from harness.stats.setting import Setting

Mark = Literal["", "best", "tie"]


@dataclass(frozen=True, slots=True)
class Text:
    """Words in a cell."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """``setting`` and ``quantity`` say where a number came from (see ``trace``); None for words."""

    content: Estimate | Missing | Text
    mark: Mark = ""
    setting: Setting | None = None
    quantity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``group`` is printed over neighbours that share it."""

    name: str
    group: str = ""
    decimals: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """``section`` starts a block of rows when it differs from the row above."""

    label: str
    cells: tuple[TableCell, ...]
    section: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """``name`` is the paper's number or our word; every row has one cell per column."""

    name: str
    title: str
    stub: str  # heading of the row labels
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    intervals: bool = False  # print [low, high] beside each value

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(f"table {self.name}: row {row.label!r} has {len(row.cells)} cells")

    def cell(self, row: int, column: int) -> TableCell:
        """By 1-based place, as the rendered table is counted."""
        return self.rows[row - 1].cells[column - 1]

    @cached_property
    def holes(self) -> dict[str, int]:
        """Reasons of the missing cells, numbered from 1 in order of appearance."""
        contents = (c.content for r in self.rows for c in r.cells)
        reasons = dict.fromkeys(c.reason for c in contents if isinstance(c, Missing))
        return {reason: number for number, reason in enumerate(reasons, 1)}


def words(*texts: str) -> tuple[TableCell, ...]:
    """Cells that hold words."""
    return tuple(TableCell(content=Text(t)) for t in texts)


def marks(values: Sequence[Estimate | Missing], band: float) -> list[Mark]:
    """Best in the row, and those within ``band`` of it; nothing with fewer than two numbers."""
    numbers = [v.value for v in values if isinstance(v, Estimate)]
    if len(numbers) < 2:
        return ["" for _ in values]
    best = max(numbers)
    return [_mark(v, best, band) for v in values]


def _mark(value: Estimate | Missing, best: float, band: float) -> Mark:
    if isinstance(value, Missing):
        return ""
    return "best" if value.value == best else "tie" if value.value >= best * (1 - band) else ""

"""The words of a table, before any markup: numbers with their decimals, holes with the number of their reason."""

from collections.abc import Iterator
from itertools import groupby

from harness.stats.estimate import Estimate, Missing
from harness.tables.table import Column, Table, TableCell, TableRow, Text

DASH = "\N{EM DASH}"


def number(estimate: Estimate, decimals: int, interval: bool = False) -> str:
    """``5.77`` or ``5.77 [5.58, 5.97]``; never a minus zero."""
    text = f"{estimate.value:z.{decimals}f}"
    if interval and estimate.low is not None and estimate.high is not None:
        text += f" [{estimate.low:z.{decimals}f}, {estimate.high:z.{decimals}f}]"
    return text


def footnotes(table: Table) -> list[str]:
    """Reasons of holes by number, then the table's notes."""
    return [f"({number}) {reason}" for reason, number in table.holes.items()] + list(table.notes)


def texts(table: Table, row: TableRow) -> list[str]:
    """The words of a row's cells, without markup."""
    return [_text(cell, column, table) for cell, column in zip(row.cells, table.columns, strict=True)]


def _text(cell: TableCell, column: Column, table: Table) -> str:
    match cell.content:
        case Text(text):
            return text
        case Missing(reason):
            return f"{DASH} ({table.holes[reason]})"
        case estimate:
            return number(estimate, column.decimals, table.intervals)


def sections(table: Table) -> Iterator[tuple[str, list[TableRow]]]:
    """Runs of rows under one heading."""
    for name, rows in groupby(table.rows, key=lambda row: row.section):
        yield name, list(rows)


def groups(table: Table) -> list[tuple[str, int]]:
    """Runs of columns under one heading, with their widths."""
    return [(name, len(list(columns))) for name, columns in groupby(table.columns, key=lambda c: c.group)]

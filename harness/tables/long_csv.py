"""Tables as long CSV for programs: one line per cell, in full precision."""

import csv
import io

from harness.stats.estimate import Missing
from harness.tables.table import Table, TableCell, Text

FIELDS = ("table", "section", "row", "group", "column", "value", "low", "high", "n", "mark", "method", "text")


def long_csv(table: Table) -> str:
    """One line per cell with the columns of `FIELDS`; ``text`` holds words, or why a number is missing."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    for row in table.rows:
        for cell, column in zip(row.cells, table.columns, strict=True):
            writer.writerow([table.name, row.section, row.label, column.group, column.name, *_csv(cell)])
    return out.getvalue()


def _csv(cell: TableCell) -> tuple[object, ...]:
    match cell.content:
        case Text(text):
            return ("", "", "", "", "", "", text)
        case Missing(reason):
            return ("", "", "", "", "", "", f"missing: {reason}")
        case e:
            return (e.value, e.low, e.high, e.n, cell.mark, e.method, "")

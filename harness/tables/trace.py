"""What is behind a number in a table: its estimator, its cells, their files, and their rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.store import run as store
from harness.tables.table import Table, TableCell
from sglang_specbench.errors import UserError

ADDRESS = "write TABLE:ROW:COLUMN, counted from 1, e.g. 5:1:2; rows are those with numbers, section headings aside"
ROW_COLUMNS = [
    *("index", "prompt_id", "turn", "category", "completion_tokens", "verify_ct", "correct_drafts", "retractions"),
    *("sent_s", "first_token_s", "done_s", "finish_reason", "outcome", "reason"),
]
CELL_COLUMNS = ["seed", "repeat", "allocation", "wall_s", "tau", "throughput", "speedup", "block_ms"]


def address(text: str) -> tuple[str, int, int]:
    """``5:1:2`` to (table, row, column)."""
    parts = text.split(":")
    if len(parts) != 3 or not all(p.isdigit() and int(p) for p in parts[1:]):
        raise UserError(f"--trace: {text!r} is no cell", ADDRESS)
    return parts[0], int(parts[1]), int(parts[2])


def find(table: Table, row: int, column: int) -> TableCell:
    """The cell at a place; `UserError` if the table is smaller."""
    if row > len(table.rows) or column > len(table.columns):
        size = f"{len(table.rows)} rows and {len(table.columns)} columns"
        raise UserError(f"--trace: table {table.name} has {size}", ADDRESS)
    return table.cell(row, column)


def trace(results: Results, folders: Sequence[Path], table: Table, row: int, column: int) -> Iterator[str]:
    """Lines for a reader."""
    cell = find(table, row, column)
    head, line = table.columns[column - 1], table.rows[row - 1]
    yield f"{table.title}: {line.section} {line.label}, {head.group} {head.name}"
    yield from _content(cell)
    if cell.setting is None:
        return
    yield f"setting: {cell.setting}; quantity: {cell.quantity}"
    sources = results.sources.get(cell.setting, ())
    for name in sources:
        yield from _cell(results, folders, name)
    if not sources:
        yield f"no cells: {'printed in the paper' if results.cells is None else results.holes.get(cell.setting, '')}"


def _content(cell: TableCell) -> Iterator[str]:
    match cell.content:
        case Estimate(value, low, high, n, method):
            interval = "no interval" if low is None else f"interval [{low:.6g}, {high:.6g}]"
            yield f"value: {value:.10g}; {interval}; n = {n}"
            yield f"estimator: {method}"
        case Missing(reason):
            yield f"missing: {reason}"
        case words:
            yield f"words: {words.text}"


def _cell(results: Results, folders: Sequence[Path], name: str) -> Iterator[str]:
    assert results.per_cell is not None
    path = next(p for f in folders if (p := store.cells_dir(f) / f"{name}.parquet").exists())
    header, rows = store.read(path)
    values = results.per_cell[results.per_cell.cell == name].iloc[0]
    known = [f"{k}={values[k]}" for k in CELL_COLUMNS if k in values and pd.notna(values[k])]
    yield ""
    yield f"cell {name}: {header.cell.label}"
    yield f"file: {path}"
    yield f"values: {', '.join(known)}"
    yield pd.DataFrame([vars(row) for row in rows])[ROW_COLUMNS].to_string(index=False)

"""``compare RUN --arms A B`` as tables: one a quantity, a section per target, temperature and concurrency."""

from collections.abc import Sequence

from harness.report.contrasts import QUANTITIES, Contrast
from harness.report.sentences import title
from harness.stats.blocks import QUANTITY
from harness.stats.results import Results
from harness.stats.setting import printed
from harness.tables.build import method_notes
from harness.tables.table import Column, Table, TableCell, TableRow, words

NAMES = {"throughput": ("Tokens a second", 1), "tau": ("Acceptance length tau", 3), QUANTITY: ("Blocks a second", 2)}
PAIRED = "change: 100 (first / second - 1), paired by prompts; intervals are 95 %."
PRINTED = "change: 100 (first / second - 1); intervals are what the rounding of the printed numbers leaves open."
READ = (
    "more, less: the whole interval lies "
    "beyond the band (1 % or the measured noise floor, whichever is wider); equal: inside it; open: neither."
)


def tables(results: Results, found: Sequence[Contrast]) -> list[Table]:
    """Quantities without a line are left out."""
    made = [_table(results, [c for c in found if c.quantity == q], q) for q in QUANTITIES]
    return [table for table in made if table.rows]


def _table(results: Results, found: Sequence[Contrast], quantity: str) -> Table:
    name, decimals = NAMES[quantity]
    if not found:
        return Table(name=quantity, title=name, stub="", columns=(), rows=())
    first, second = title(found[0].setting.arm), title(found[0].rival)
    columns = (
        Column(name=first, decimals=decimals),
        Column(name=second, decimals=decimals),
        Column(name="change, %", decimals=1),
        Column(name="verdict"),
        Column(name="why"),
    )
    rows = tuple(_row(c) for c in found)
    notes = (PRINTED if results.cells is None else PAIRED, READ, *method_notes([row.cells[0] for row in rows]))
    return Table(
        name=f"arms_{quantity}",
        title=f"{name}: {first} against {second}, {results.name}",
        stub="Prompt set",
        columns=columns,
        rows=rows,
        notes=notes,
        intervals=True,
    )


def _row(c: Contrast) -> TableRow:
    s = c.setting
    numbers = tuple(
        TableCell(content=e, setting=place, quantity=c.quantity)
        for e, place in ((c.first, s), (c.second, s.of(c.rival)))
    )
    return TableRow(
        section=f"{s.target}, T = {s.temperature:g}, concurrency {s.concurrency}",
        label=f"{printed(s.benchmark)} {s.tier}".strip(),
        cells=(*numbers, TableCell(content=c.change), *words(c.verdict, c.reason)),
    )

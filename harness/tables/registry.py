"""Every table by name: the paper's numbers first, then ours."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.stats.results import Results
from harness.tables import diagnostics as ours
from harness.tables import paper_acceptance, paper_rest, paper_speed
from harness.tables.build import UNAUDITED, absence_notes, audit_notes
from harness.tables.scores import scores
from harness.tables.table import Table
from harness.tables.variants import variants
from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError

TABLES: Mapping[str, Callable[[Results], Table]] = {
    "1": paper_speed.table1,
    "2": paper_speed.table2,
    "3": paper_speed.table3,
    "4": paper_rest.table4,
    "5": paper_acceptance.table5,
    "6": paper_acceptance.table6,
    "7": paper_acceptance.table7,
    "8": paper_acceptance.table8,
    "9": paper_acceptance.table9,
    "10": paper_acceptance.table10,
    "11": paper_acceptance.table11,
    "16": paper_rest.table16,
    "17": paper_speed.table17,
    "ledger": ours.ledger,
    "survival": ours.survival,
    "speed": ours.speed,
    "closure": ours.closed,
    "noise": ours.noise_floor,
    "ties": ours.ties,
    "scores": scores,
    "variants": variants,
    "rounding": ours.rounding,
}


def table(results: Results, name: str) -> Table:
    """The table called ``name``; `UserError` with the nearest name if there is none."""
    if name not in TABLES:
        raise UserError(f"--table: there is no table {name!r}", near_name(name, TABLES))
    found = TABLES[name](results)
    words = (*(column.group + column.name for column in found.columns), *(row.label for row in found.rows))
    daggers = audit_notes(results) if any(UNAUDITED in text for text in words) else ()
    return replace(found, notes=(*found.notes, *absence_notes(results), *daggers))


def filename(name: str) -> str:
    """Stem of the file that a table is written to: ``table05``, ``ledger``."""
    return f"table{int(name):02}" if name.isdigit() else name

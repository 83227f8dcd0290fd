"""Tables as Markdown."""

import re
from collections.abc import Sequence

from harness.tables.cell_text import footnotes, sections, texts
from harness.tables.table import Table

SPECIAL = re.compile(r"([\\`*_|<>])")
WRAP = {"": "{}", "best": "**{}**", "tie": "<u>{}</u>"}


def _md(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)


def markdown(table: Table) -> str:
    """A pipe table; groups are joined to the column names, a section is a row of its own."""
    heads = [table.stub, *(f"{c.group} {c.name}".strip() for c in table.columns)]
    lines = [f"### {_md(table.title)}", "", _pipe([_md(h) for h in heads])]
    lines.append(_pipe(["---", *["---:"] * len(table.columns)]))
    for section, rows in sections(table):
        if section:
            lines.append(_pipe([f"**{_md(section)}**", *[""] * len(table.columns)]))
        for row in rows:
            cells = [WRAP[c.mark].format(_md(t)) for c, t in zip(row.cells, texts(table, row), strict=True)]
            lines.append(_pipe([_md(row.label), *cells]))
    lines += ["", *(f"- {_md(note)}" for note in footnotes(table))]
    return "\n".join(lines).rstrip() + "\n"


def _pipe(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"

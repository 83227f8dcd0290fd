"""Tables to Markdown, LaTeX (booktabs), CSV, HTML and the terminal: the only place where a number becomes text.

A hole prints as a dash with the number of its reason, and the reasons follow the table. CSV is long: one line per cell
with value, interval, n, method and reason in full precision, for programs. Words from a run (names, reasons) are
escaped in every format that has markup.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import jinja2

from harness.stats.estimate import Estimate, Missing
from harness.tables.table import Cell, Column, Row, Table, Text

DASH = "\N{EM DASH}"
MD_SPECIAL = re.compile(r"([\\`*_|<>])")
TEX = {c: "\\" + c for c in "&%$#_{}"}
TEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", DASH: "---"}
TEX |= {"τ": r"$\tau$", "±": r"$\pm$", "Δ": r"$\Delta$", "·": r"$\cdot$", "<": "$<$", ">": "$>$"}
TEX_SPECIAL = re.compile("|".join(map(re.escape, TEX)))


def number(estimate: Estimate, decimals: int, interval: bool = False) -> str:
    """``5.77`` or ``5.77 [5.58, 5.97]``; never a minus zero."""
    text = f"{estimate.value:z.{decimals}f}"
    if interval and estimate.low is not None and estimate.high is not None:
        text += f" [{estimate.low:z.{decimals}f}, {estimate.high:z.{decimals}f}]"
    return text


def footnotes(table: Table) -> list[str]:
    """Reasons of holes by number, then the table's notes."""
    return [f"({number}) {reason}" for reason, number in table.holes.items()] + list(table.notes)


def texts(table: Table, row: Row) -> list[str]:
    """The words of a row's cells, without markup."""
    return [_text(cell, column, table) for cell, column in zip(row.cells, table.columns, strict=True)]


def _text(cell: Cell, column: Column, table: Table) -> str:
    match cell.content:
        case Text(text):
            return text
        case Missing(reason):
            return f"{DASH} ({table.holes[reason]})"
        case estimate:
            return number(estimate, column.decimals, table.intervals)


def _sections(table: Table) -> Iterator[tuple[str, list[Row]]]:
    for name, rows in groupby(table.rows, key=lambda row: row.section):
        yield name, list(rows)


def _groups(table: Table) -> list[tuple[str, int]]:
    """Runs of columns under one heading, with their widths."""
    return [(name, len(list(columns))) for name, columns in groupby(table.columns, key=lambda c: c.group)]


def _md(text: str) -> str:
    return MD_SPECIAL.sub(r"\\\1", text)


def markdown(table: Table) -> str:
    """A pipe table; groups are joined to the column names, a section is a row of its own."""
    heads = [table.stub, *(f"{c.group} {c.name}".strip() for c in table.columns)]
    lines = [f"### {_md(table.title)}", "", _pipe([_md(h) for h in heads])]
    lines.append(_pipe(["---", *["---:"] * len(table.columns)]))
    wrap = {"": "{}", "best": "**{}**", "tie": "<u>{}</u>"}
    for section, rows in _sections(table):
        if section:
            lines.append(_pipe([f"**{_md(section)}**", *[""] * len(table.columns)]))
        for row in rows:
            cells = [wrap[c.mark].format(_md(t)) for c, t in zip(row.cells, texts(table, row), strict=True)]
            lines.append(_pipe([_md(row.label), *cells]))
    lines += ["", *(f"- {_md(note)}" for note in footnotes(table))]
    return "\n".join(lines).rstrip() + "\n"


def _pipe(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _tex(text: str) -> str:
    return TEX_SPECIAL.sub(lambda match: TEX[match.group()], text)


def latex(table: Table) -> str:
    r"""A ``table`` with a booktabs ``tabular``; needs ``\usepackage{booktabs}``."""
    width = len(table.columns)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(table.title)}}}"]
    lines.append(rf"\begin{{tabular}}{{l{'r' * width}}}")
    lines += [r"\toprule", *_tex_heads(table)]
    wrap = {"": "%s", "best": r"\textbf{%s}", "tie": r"\underline{%s}"}
    for section, rows in _sections(table):
        lines.append(r"\midrule")
        if section:
            lines.append(rf"\multicolumn{{{width + 1}}}{{l}}{{\emph{{{_tex(section)}}}}} \\")
        for row in rows:
            cells = [wrap[c.mark] % _tex(t) for c, t in zip(row.cells, texts(table, row), strict=True)]
            lines.append(" & ".join([_tex(row.label), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\\ {{\footnotesize {_tex(note)}}}" for note in footnotes(table)]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _tex_heads(table: Table) -> Iterator[str]:
    if any(c.group for c in table.columns):
        groups = _groups(table)
        yield " & ".join(["", *(rf"\multicolumn{{{n}}}{{c}}{{{_tex(g)}}}" for g, n in groups)]) + r" \\"
        place = 2
        for group, width in groups:
            if group:
                yield rf"\cmidrule(lr){{{place}-{place + width - 1}}}"
            place += width
    yield " & ".join([_tex(table.stub), *(_tex(c.name) for c in table.columns)]) + r" \\"


WIDTH = 160  # columns of a wide terminal; wider tables wrap inside their cells
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


def _csv(cell: Cell) -> tuple[object, ...]:
    match cell.content:
        case Text(text):
            return ("", "", "", "", "", "", text)
        case Missing(reason):
            return ("", "", "", "", "", "", f"missing: {reason}")
        case e:
            return (e.value, e.low, e.high, e.n, cell.mark, e.method, "")


PAGE = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string("""\
<table class="specbench" id="table-{{ table.name }}">
<caption>{{ table.title }}</caption>
<thead>
{% if grouped %}
<tr><td></td>{% for name, width in groups %}<th colspan="{{ width }}" scope="colgroup">{{ name }}</th>{% endfor %}</tr>
{% endif %}
<tr><th scope="col">{{ table.stub }}</th>{% for c in table.columns %}<th scope="col">{{ c.name }}</th>{% endfor %}</tr>
</thead>
{% for section, rows in sections %}
<tbody>
{% if section %}
<tr><th colspan="{{ table.columns | length + 1 }}" scope="rowgroup">{{ section }}</th></tr>
{% endif %}
{% for row, cells in rows %}
<tr><th scope="row">{{ row.label }}</th>\
{% for cell, text in cells %}<td class="{{ cell.mark }}" title="{{ hover(cell) }}">{{ text }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
{% endfor %}
</table>
{% for note in notes %}
<p class="note">{{ note }}</p>
{% endfor %}
""")


def page(table: Table) -> str:
    """An HTML fragment; classes ``best`` and ``tie`` mark cells, and a number's interval and method are its title."""
    sections = [
        (name, [(row, list(zip(row.cells, texts(table, row), strict=True))) for row in rows])
        for name, rows in _sections(table)
    ]
    groups = _groups(table)
    grouped = any(name for name, _ in groups)
    return (
        PAGE.render(
            table=table, groups=groups, grouped=grouped, sections=sections, notes=footnotes(table), hover=_hover
        )
        + "\n"
    )


def _hover(cell: Cell) -> str:
    match cell.content:
        case Estimate(_, low, high, n, method):
            interval = f"[{low:.4g}, {high:.4g}] " if low is not None and high is not None else ""
            return f"{interval}{f'n={n} ' if n else ''}{method}"
        case Missing(reason):
            return reason
        case _:
            return ""


def terminal(table: Table) -> str:
    """Aligned text; best in bold and ties underlined if the standard output is a terminal."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

    grid = RichTable(title=RichText(table.title), title_justify="left", pad_edge=False)
    grid.add_column(RichText(table.stub))
    for column in table.columns:
        grid.add_column(RichText(f"{column.group}\n{column.name}".strip()), justify="right")
    style = {"": "", "best": "bold", "tie": "underline"}
    for section, rows in _sections(table):
        if section:
            grid.add_section()
            grid.add_row(RichText(section, style="italic"))
        for row in rows:
            cells = zip(row.cells, texts(table, row), strict=True)
            grid.add_row(RichText(row.label), *(RichText(t, style=style[c.mark]) for c, t in cells))
    console = Console(width=WIDTH)
    with console.capture() as capture:
        console.print(grid, *map(RichText, footnotes(table)), sep="\n")
    return capture.get()


FORMATS = {
    "md": (markdown, "md"),
    "tex": (latex, "tex"),
    "csv": (long_csv, "csv"),
    "html": (page, "html"),
    "term": (terminal, "txt"),
}

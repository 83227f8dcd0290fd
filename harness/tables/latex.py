"""Tables as LaTeX with booktabs rules."""

import re
from collections.abc import Iterator

from harness.tables.cell_text import DASH, footnotes, groups, sections, texts
from harness.tables.table import Table

ESCAPES = {c: "\\" + c for c in "&%$#_{}"}
ESCAPES |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", DASH: "---"}
ESCAPES |= {"τ": r"$\tau$", "±": r"$\pm$", "Δ": r"$\Delta$", "·": r"$\cdot$", "<": "$<$", ">": "$>$"}
ESCAPES |= {"†": r"$\dagger$"}
SPECIAL = re.compile("|".join(map(re.escape, ESCAPES)))
WRAP = {"": "%s", "best": r"\textbf{%s}", "tie": r"\underline{%s}"}


def _tex(text: str) -> str:
    return SPECIAL.sub(lambda match: ESCAPES[match.group()], text)


def latex(table: Table) -> str:
    r"""A ``table`` with a booktabs ``tabular``; needs ``\usepackage{booktabs}``."""
    width = len(table.columns)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(table.title)}}}"]
    lines.append(rf"\begin{{tabular}}{{l{'r' * width}}}")
    lines += [r"\toprule", *_tex_heads(table)]
    for section, rows in sections(table):
        lines.append(r"\midrule")
        if section:
            lines.append(rf"\multicolumn{{{width + 1}}}{{l}}{{\emph{{{_tex(section)}}}}} \\")
        for row in rows:
            cells = [WRAP[c.mark] % _tex(t) for c, t in zip(row.cells, texts(table, row), strict=True)]
            lines.append(" & ".join([_tex(row.label), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\\ {{\footnotesize {_tex(note)}}}" for note in footnotes(table)]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _tex_heads(table: Table) -> Iterator[str]:
    if any(c.group for c in table.columns):
        runs = groups(table)
        yield " & ".join(["", *(rf"\multicolumn{{{n}}}{{c}}{{{_tex(g)}}}" for g, n in runs)]) + r" \\"
        place = 2
        for group, width in runs:
            if group:
                yield rf"\cmidrule(lr){{{place}-{place + width - 1}}}"
            place += width
    yield " & ".join([_tex(table.stub), *(_tex(c.name) for c in table.columns)]) + r" \\"

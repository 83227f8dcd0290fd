"""Formats: escaping, holes, marks, digits."""

import csv
import io
import shutil
import subprocess

import pytest

from harness.stats.estimate import Estimate, Missing
from harness.tables.cell_text import number
from harness.tables.render import FORMATS, latex, long_csv, markdown, page, terminal
from harness.tables.table import Column, Table, TableCell, TableRow, marks, words

HOSTILE = "<script>alert('x')</script> & 50% _a_ {b} \\c | d"


def table():
    columns = (Column(name="τ", group="A"), Column(name="tok/s", group="A", decimals=0), Column(name="note", group=""))
    number_cell = TableCell(content=Estimate(7.5, 7.1, 8.0, 30, "1 + correct / blocks"), mark="best")
    hole = TableCell(content=Missing(HOSTILE))
    tied = TableCell(content=Estimate(99.5, None, None, 1, "m"), mark="tie")
    rows = (
        TableRow(label="x", section="T = 0", cells=(number_cell, hole, *words("plain"))),
        TableRow(label=HOSTILE, section="T = 1", cells=(hole, tied, *words(""))),
    )
    return Table(name="t", title=HOSTILE, stub="Where", columns=columns, rows=rows, notes=("a note",))


def test_numbers_have_their_decimals_and_no_minus_zero():
    assert number(Estimate(-0.001, -1, 1, 2, ""), 2) == "0.00"
    assert number(Estimate(7.5, 7.25, 7.75, 2, ""), 2, interval=True) == "7.50 [7.25, 7.75]"
    assert number(Estimate(7.5, None, None, 1, ""), 1, interval=True) == "7.5"


@pytest.mark.parametrize("form", FORMATS)
def test_a_hole_prints_its_reason_once_and_numbers_stay(form):
    text = FORMATS[form][0](table())
    assert "7.5" in text
    assert text.count("alert") >= 2  # the title and the reason
    if form != "csv":
        assert "(1)" in text


def test_html_is_escaped():
    text = page(table())
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert 'class="best"' in text
    assert "[7.1, 8] n=30 1 + correct / blocks" in text


def test_markdown_cannot_break_its_table_or_inject_html():
    lines = markdown(table()).splitlines()
    pipes = {line.replace("\\|", "").count("|") for line in lines if line.startswith("|")}
    assert pipes == {5}  # four cells
    assert "<script" not in markdown(table()).replace("\\<", "")


def test_csv_is_long_and_complete():
    lines = list(csv.DictReader(io.StringIO(long_csv(table()))))
    assert len(lines) == 6
    assert (lines[0]["value"], lines[0]["low"], lines[0]["n"], lines[0]["mark"]) == ("7.5", "7.1", "30", "best")
    assert lines[1]["text"] == f"missing: {HOSTILE}"


def test_latex_has_booktabs_rules_and_escaped_words():
    text = latex(table())
    rules = (r"\toprule", r"\midrule", r"\bottomrule", r"\cmidrule(lr){2-3}")
    for part in (*rules, r"\textbf{7.50}", r"\underline{100}", r"$\tau$"):
        assert part in text
    assert r"50\% \_a\_ \{b\} \textbackslash{}c" in text
    assert text.count(r"\begin{") == text.count(r"\end{")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path):
    source = r"\documentclass{article}\usepackage{booktabs}\begin{document}" + latex(table()) + r"\end{document}"
    (tmp_path / "t.tex").write_text(source)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "t.tex"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_terminal_takes_words_as_words():
    row = TableRow(label="[i]", cells=words("[u]y"))
    odd = Table(name="t", title="[bold]x", stub="[red]", columns=(Column(name="[b]"),), rows=(row,))
    text = terminal(odd)
    for word in ("[bold]x", "[red]", "[b]", "[i]", "[u]y"):
        assert word in text


def test_marks_need_a_contest():
    one = Estimate(2.0, None, None, 1, "")
    assert marks([one, Missing("")], 0.01) == ["", ""]
    assert marks([one, Estimate(1.98, None, None, 1, ""), Estimate(1.97, None, None, 1, "")], 0.01) == [
        "best",
        "tie",
        "",
    ]


def test_a_row_of_the_wrong_width_is_a_defect():
    with pytest.raises(ValueError, match="row 'x' has 1 cells"):
        Table(name="t", title="", stub="", columns=(), rows=(TableRow(label="x", cells=words("a")),))

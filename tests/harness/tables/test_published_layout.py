"""``specbench tables paper``: every printed number in its published place, against golden files, cell by cell.

Golden files are the Markdown of each table. Numbers are compared as numbers and words as words, so a change of
spacing or markup is no difference; a changed digit is.
"""

import re
from pathlib import Path

import pytest

from harness.paper import published
from harness.stats.estimate import Estimate
from harness.tables.registry import TABLES, filename
from harness.tables.render import markdown

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "paper"
PAPER = published.results()
PRINTED = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "16")


def cells(text):
    """Cells of the pipe table, markup off, numbers as floats."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [[value(re.sub(r"\*\*|</?u>|\\", "", cell).strip()) for cell in row] for row in rows]


def value(text):
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.parametrize("name", [*TABLES])
def test_golden(name, request):
    path = GOLDEN / f"{filename(name)}.md"
    text = markdown(TABLES[name](PAPER))
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert cells(text) == cells(path.read_text(encoding="utf-8"))


def test_the_comparison_sees_one_digit():
    text = "| a | b |\n| --- | --- |\n| x | **7.56** |\n"
    assert cells(text) != cells(text.replace("7.56", "7.57"))
    assert cells(text) == cells(text.replace("**7.56**", "<u>7.560</u>"))


def numbers(name):
    table = TABLES[name](PAPER)
    return [c.content.value for row in table.rows for c in row.cells if isinstance(c.content, Estimate)]


@pytest.mark.parametrize(
    ("name", "csv", "columns"),
    [
        ("1", "table01_speedup", ["value"]),
        ("2", "table02_concurrency", ["value"]),
        ("3", "table03_head_cost", ["head_ms", "share_of_block_pct"]),
        ("5", "table05_tau_throughput_8b", ["tau", "throughput_tps"]),
        ("6", "table06_tau_throughput_4b", ["tau", "throughput_tps"]),
        ("7", "table07_argmax_t1", ["tau", "throughput_tps"]),
        ("8", "table08_speed_categories_8b", ["tau", "throughput_tps"]),
        ("9", "table09_speed_categories_4b", ["tau", "throughput_tps"]),
        ("16", "table16_decode_rule", ["tau_greedy_walk", "tau_exact_path", "delta_pct"]),
    ],
)
def test_a_table_holds_just_the_numbers_of_its_file(name, csv, columns):
    printed = [float(line[c]) for line in published.rows(csv) for c in columns if line[c]]
    assert sorted(numbers(name)) == sorted(printed)


def test_seed_tables_hold_just_the_numbers_of_their_file():
    printed = [float(line[c]) for line in published.rows("table10_11_seed_spread") for c in ("mean", "sample_std")]
    assert sorted(numbers("10") + numbers("11")) == sorted(printed)


def test_digits_are_those_printed():
    """Every number of the files appears with its own digits in the rendered tables."""
    text = " ".join(markdown(TABLES[name](PAPER)) for name in PRINTED)
    words = set(re.findall(r"-?\d+(?:\.\d+)?", text))
    for name in ("table01_speedup", "table05_tau_throughput_8b", "table10_11_seed_spread", "table16_decode_rule"):
        for line in published.rows(name):
            printed = {v for k, v in line.items() if v and k not in ("target", "temperature", "benchmark", "arm")}
            assert {v for v in printed if re.fullmatch(r"-?\d+(\.\d+)?", v)} <= words


def test_best_and_ties_are_marked():
    row = next(r for r in TABLES["1"](PAPER).rows if r.label == "MATH-500")
    marks = dict(zip([(c.group, c.name) for c in TABLES["1"](PAPER).columns], [c.mark for c in row.cells], strict=True))
    assert marks[("LiLiCorr", "Qwen3-8B")] == "best"
    assert marks[("DFlash2", "Qwen3-8B")] == "tie"  # 6.54 of 6.57
    assert marks[("LiLiCorr", "Qwen3-4B")] == "tie"  # 6.13 of 6.14
    assert marks[("Domino", "Qwen3-8B")] == ""
    assert marks[("AR tok/s", "Qwen3-8B")] == ""

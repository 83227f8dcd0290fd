"""The table in the middle of a run: when it comes, what it says, and that nothing about it ends the run."""

import dataclasses

import pytest

from harness.report.so_far import SoFar
from harness.store import run as store
from sglang_specbench.console import Console
from tests import synthetic_run as synthetic

ARMS = ("ar", "dflash", "dspark", "lilicorr")
CELLS = [
    synthetic.cell("toy", arm, name, prompts=8, concurrency=c)
    for arm in ARMS
    for name in ("gsm8k", "mbpp")
    for c in (1, 4)
]


def end(folder, cells, capsys, outcome="ok"):
    """Words printed after each cell."""
    synthetic.write(folder, [], planned=CELLS)
    so_far, said = SoFar(folder, cells, Console()), []
    for header, rows in synthetic.run(cells):
        if outcome != "ok":
            header, rows = synthetic.failed(header, outcome, "why")
        store.write_cell(folder, header, rows)
        so_far.cell(header)
        said.append(capsys.readouterr().out)
    return said


def test_it_comes_once_when_half_of_the_arms_of_a_place_are_there(tmp_path, capsys):
    said = end(tmp_path, CELLS, capsys)
    assert [bool(text) for text in said] == [False] * 4 + [True] + [False] * 11
    table = said[4]
    assert "so far, with 11 cells still to be measured" in table
    assert "toy, GSM8K, T=0, concurrency 1" in table
    assert "DFlash" in table
    assert "MBPP" not in table


@pytest.mark.parametrize(
    ("cells", "outcome"),
    [
        (CELLS[:6], "ok"),  # few cells: the end is near
        ([c for c in CELLS if c.arm != "ar"], "ok"),  # no AR to compare with
        (CELLS, "timeout"),
        ([dataclasses.replace(c, prompt_set=f"s{i}") for i, c in enumerate(CELLS)], "ok"),  # no two at one place
    ],
)
def test_it_does_not_come_where_it_would_say_nothing(tmp_path, capsys, cells, outcome):
    assert not any(end(tmp_path, cells, capsys, outcome))


def test_a_run_that_cannot_be_read_yet_goes_on(tmp_path, capsys):
    synthetic.write(tmp_path, [], planned=CELLS)
    so_far = SoFar(tmp_path, CELLS, Console())
    for header, _ in synthetic.run(CELLS):  # nothing is written
        so_far.cell(header)
    assert "no table so far" in capsys.readouterr().out

"""The sentences of the paper that its printed numbers allow, out of the commands."""

import csv
import io
import re

import pytest

from harness.commands.compare import compare
from harness.commands.tables import tables
from sglang_specbench.errors import UserError

BLOCK = "lilicorr,lilicorr-argmax,dflash2,dflash2-argmax,domino,dspark,dspark-argmax,dflash"


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """LiLiCorr's line of ``specbench tables paper --table scores``: label -> wins, ties, trails, fastest, places."""
    out = tmp_path_factory.mktemp("scores")
    tables(runs=["paper"], table=["scores"], format="csv", out=out, arms=BLOCK, trace="")
    found = {}
    for line in csv.DictReader(io.StringIO((out / "scores.csv").read_text())):
        if line["section"] == "LiLiCorr":
            found.setdefault(line["row"], {})[line["column"]] = int(float(line["value"]))
    return found


def wins(line):
    return line["wins"], line["ties"], line["trails"]


def test_one_stream_twelve_four_two_and_fifteen_two_one(scores):
    assert wins(scores["T = 0"]) == (12, 4, 2)
    assert wins(scores["T = 1, sampled"]) == (15, 2, 1)


def test_all_eighteen_among_argmax_proposals(scores):
    assert wins(scores["T = 1, argmax"]) == (18, 0, 0)


def test_fastest_in_all_forty_four_categories(scores):
    assert (scores["categories"]["fastest"], scores["categories"]["places"]) == (44, 44)
    assert wins(scores["categories"]) == (41, 3, 0)


def test_all_thirty_six_loads(scores):
    assert wins(scores["load"]) == (36, 0, 0)


def lines(capsys, *arms):
    compare(first="paper", second="", arms=arms, format="term", out=None)
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("Qwen3-8B, T = 1")]


def test_dspark_accepts_3_1_percent_more_and_lilicorr_finishes_7_2_percent_more_blocks(capsys):
    """At 8B, T=1. From the printed averages the second is 7.1, and their rounding leaves room for 7.2."""
    (text,) = lines(capsys, "dspark", "lilicorr")
    assert "it accepts 3.1 %" in text
    (text,) = lines(capsys, "lilicorr", "dspark")
    value, low, high = map(float, re.search(r"finishes (\S+) % \[(\S+), (\S+)\] more blocks", text).groups())
    assert value == 7.1
    assert low <= 7.2 <= high


def test_a_wrong_call_says_what_to_name():
    with pytest.raises(UserError, match="name two runs, or one run and --arms A B"):
        compare(first="paper")
    with pytest.raises(UserError, match=r"has no arm 'lilicor'.*'lilicorr'"):
        compare(first="paper", arms=("lilicor", "dspark"))
    with pytest.raises(UserError, match="against itself"):
        compare(first="paper", arms=("dspark", "dspark"))

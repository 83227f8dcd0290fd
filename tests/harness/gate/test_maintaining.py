"""What a maintainer meets: baselines that are whole, verdicts that say beforehand what they cannot be, a known run."""

import re
import shutil
from dataclasses import replace

import pytest
import typer

from harness.commands import baseline as baseline_command
from harness.commands import gate as command
from harness.gate import baseline, history, record
from harness.gate.verdict import gate
from harness.load_results import load_results
from harness.store import run as store
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic
from tests.harness.gate.test_gate_command import GONE, RULES, make


def called(tmp_path, candidate, **options):
    """The command on an accepted baseline; its exit code."""
    with pytest.raises(typer.Exit) as left:
        command.gate(tmp_path / candidate, baseline=tmp_path / "baseline.json", **options)
    return left.value.exit_code


@pytest.fixture
def accepted(tmp_path):
    """A folder with a baseline of three repeats, written by the command."""
    make(tmp_path / "old")
    baseline_command.accept(tmp_path / "old", why="first", file=tmp_path / "baseline.json")
    return tmp_path


def test_a_baseline_says_what_to_commit_with_it(accepted, capsys):
    baseline_command.accept(accepted / "old", why="again", file=accepted / "baseline.json")
    said = capsys.readouterr().out
    kept = re.search(r"keep or commit with it: (\S+)/cells, plan.json, sweep.toml .(\d+) files", said)
    assert (kept[1], int(kept[2])) == (str(accepted / "old"), len(store.cell_files(accepted / "old")) + 1)
    assert "note:" not in said
    moved = accepted / "elsewhere"
    moved.mkdir()
    shutil.copy(accepted / "baseline.json", moved)
    with pytest.raises(UserError, match=r"its run .*old is not here .a baseline is the file and that folder") as caught:
        baseline.load(moved / "baseline.json")
    assert caught.value.exit_code == 4
    for path in baseline.parts(accepted / "old"):  # what was said is enough
        (moved / path.relative_to(accepted)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, moved / path.relative_to(accepted))
    assert baseline.load(moved / "baseline.json")[1] == moved / "old"


@pytest.mark.parametrize("gone", GONE)
def test_a_run_that_lacks_cells_is_no_baseline(tmp_path, gone):
    make(tmp_path / "run", first_repeat=3, drop=GONE[gone])
    with pytest.raises(
        UserError, match=r"run: \d+ of 18 cells failed or were not run, the first: .*finish it: specbench"
    ):
        baseline.accept(tmp_path / "baseline.json", tmp_path / "run", "first")
    assert not (tmp_path / "baseline.json").exists()


def test_one_repeat_is_said_to_decide_no_throughput_before_it_is_judged(tmp_path, capsys):
    make(tmp_path / "old", repeats=1)
    baseline_command.accept(tmp_path / "old", why="first", file=tmp_path / "baseline.json")
    assert "note: throughput is never decided by one repeat on each side" in capsys.readouterr().out
    make(tmp_path / "new", first_repeat=1, repeats=1)
    assert called(tmp_path, "new") == 3
    assert "write repeats = 3 in the sweep, let gate --until-decided" in capsys.readouterr().err
    assert called(tmp_path, "new", metric="tau", tau_margin=0.05) == 0
    assert capsys.readouterr().err == ""
    make(tmp_path / "three", first_repeat=1, repeats=3)
    called(tmp_path, "three")
    assert capsys.readouterr().err == ""


def test_the_gate_judges_the_arms_that_it_is_told(accepted, capsys):
    make(accepted / "new", first_repeat=3, worse=0.85)
    margins = {"tau_margin": 0.05, "throughput_margin": 0.1}
    assert called(accepted, "new", **margins) == 1
    assert called(accepted, "new", arm=["dflash"], **margins) == 0
    assert "lilicorr" not in capsys.readouterr().out.split("### specbench gate: ok")[1]
    with pytest.raises(UserError, match=r"gate: --arm: the baseline has no arm 'dflsh' .did you mean 'dflash'"):
        command.gate(accepted / "new", baseline=accepted / "baseline.json", arm=["dflsh"])


def test_an_arm_that_is_asked_for_and_not_there_does_not_pass(accepted, capsys):
    make(accepted / "new", first_repeat=3, drop=lambda c: c.arm == "lilicorr")
    assert called(accepted, "new", arm=["dflash"], tau_margin=0.05, throughput_margin=0.1) == 0
    assert called(accepted, "new", arm=["lilicorr"]) == 3
    assert "not run yet" in capsys.readouterr().out


def test_an_empty_run_is_invalid_with_the_reason(accepted, capsys):
    (accepted / "empty" / "cells").mkdir(parents=True)
    assert called(accepted, "empty", junit=accepted / "j.xml") == 4
    assert "candidate: no cells in" in capsys.readouterr().out
    assert "no cells in" in (accepted / "j.xml").read_text()


@pytest.mark.parametrize("metrics", [("tau", "throughput"), ("tau",)])
def test_ar_alone_is_invalid_with_the_reason(tmp_path, metrics):
    old = make(tmp_path / "old")
    cells = [
        synthetic.cell("Qwen3-8B", "ar", name, prompts=150, repeat=r) for r in range(3) for name in ("gsm8k", "mbpp")
    ]
    alone = load_results(str(synthetic.write(tmp_path / "alone", synthetic.run(cells))))
    for pair in ((alone, alone), (old, alone)):
        outcome = gate(*pair, replace(RULES, metrics=metrics))
        assert outcome.exit_code == 4
        assert any("no arm but ar, so there is no drafter to judge" in t.reason for t in outcome.troubles)


def test_a_line_of_history_knows_its_run_and_what_it_was_judged_against(accepted, tmp_path):
    make(accepted / "new", first_repeat=3)
    called(accepted, "new", history=accepted / "h.jsonl")
    (entry,) = history.read(accepted / "h.jsonl")
    assert entry.against == "old"
    shutil.copytree(accepted / "new", accepted / "copy")
    assert entry.identity == record.identity(load_results(str(accepted / "copy")).cells)
    assert entry.baseline == record.identity(load_results(str(accepted / "old")).cells) != entry.identity

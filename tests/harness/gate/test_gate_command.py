"""The gate over whole runs: verdicts, exit codes, reports, history. Runs are synthetic, with known truth."""

import json
import re
import threading
import tomllib
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from harness.commands import gate as command
from harness.commands.gate import with_repeats
from harness.gate import baseline, history, record, report
from harness.gate.verdict import Rules, gate
from harness.store import run as store
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic

ARMS = ("ar", "dflash", "lilicorr")
# Synthetic requests are drawn anew in every allocation: standard errors are about 1 % for both metrics.
RULES = Rules(tau_margin=0.05, throughput_margin=0.1)


def make(folder, first_repeat=0, repeats=3, weights="old", slow=1.0, worse=1.0, fail="", device="synthetic"):
    """Three allocations of three arms. ``slow`` and ``worse`` change lilicorr only; ``fail`` is an outcome for it."""
    cells = [
        synthetic.cell("Qwen3-8B", arm, name, prompts=150, repeat=first_repeat + r, versions=(weights,))
        for r in range(repeats) for arm in ARMS for name in ("gsm8k", "mbpp")
    ]  # fmt: skip
    for header, rows in synthetic.run(cells):
        header = replace(
            header, environment={**header.environment, "device_name": device}, started_at="2026-11-29T00:00:00Z"
        )
        if header.cell.arm == "lilicorr":
            header = replace(header, wall_s=header.wall_s * slow)
            rows = [worsened(row, worse) for row in rows]
            if fail:
                header, rows = synthetic.failed(header, fail, "made to fail")
        store.write_cell(folder, header, rows)
    return store.load(folder)


def worsened(row, share):
    """Every accepted draft is lost with odds 1 - share, deterministically by rounding."""
    return replace(row, correct_drafts=round(row.correct_drafts * share))


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return make(tmp_path_factory.mktemp("old"))


def test_an_untouched_candidate_passes(old, tmp_path):
    outcome = gate(old, make(tmp_path, first_repeat=3, weights="new"), RULES)
    assert (outcome.verdict, outcome.exit_code) == ("ok", 0)


def test_a_slower_arm_is_named_with_its_sets(old, tmp_path):
    outcome = gate(old, make(tmp_path, first_repeat=3, slow=1.25), RULES)
    assert outcome.exit_code == 1
    assert {(j.arm, j.metric) for j in outcome.failed} == {("lilicorr", "throughput")}
    text = report.markdown(outcome, "old", "new")
    for name in ("gsm8k", "mbpp"):
        assert re.search(rf"- {name} T=0 argmax c=1: -(1[89]|2[012])\.", text)  # -20 %, give or take the noise


def test_a_worse_drafter_fails_on_tau(old, tmp_path):
    outcome = gate(old, make(tmp_path, first_repeat=3, worse=0.85), RULES)
    assert outcome.exit_code == 1
    assert [(j.arm, j.metric) for j in outcome.failed] == [("lilicorr", "tau")]


def test_one_allocation_a_side_cannot_judge_throughput(tmp_path):
    one, other = make(tmp_path / "a", repeats=1), make(tmp_path / "b", first_repeat=1, repeats=1)
    outcome = gate(one, other, RULES)
    assert outcome.exit_code == 3
    assert any("measure an A/A repeat" in j.note for j in outcome.judgements)


@pytest.mark.parametrize(
    ("fail", "code"), [("server_died", 5), ("timeout", 5), ("not_attested", 4), ("invalid", 4), ("oom", 5)]
)
def test_failed_cells_decide_the_exit_code(old, tmp_path, fail, code):
    outcome = gate(old, make(tmp_path, fail=fail), RULES)
    assert outcome.exit_code == code
    assert "made to fail" in report.markdown(outcome, "old", "new")


def test_another_device_is_not_comparable(old, tmp_path):
    outcome = gate(old, make(tmp_path, device="another"), RULES)
    assert outcome.exit_code == 4
    assert [t.reason for t in outcome.troubles] == ["device_name: baseline 'synthetic', candidate 'another'"]


def test_reports_escape_what_they_are_given(old, tmp_path):
    outcome = gate(old, make(tmp_path, slow=1.25), RULES)
    hostile = "<script>|`x\n::error::\x07"
    outcome = replace(outcome, judgements=tuple(replace(j, arm=hostile) for j in outcome.judgements))
    text = report.markdown(outcome, "old", "new")
    assert "<script>" not in text
    assert all(line.count("|") - line.count("\\|") in (0, 9) for line in text.splitlines())
    assert all("\n" not in line for line in report.annotations(outcome))
    suite = ElementTree.fromstring(report.junit(outcome))
    assert suite.get("failures") == "1"
    assert json.loads(report.machine(outcome))["exit_code"] == 1


def test_baseline_is_refused_after_it_was_changed(tmp_path):
    make(tmp_path / "run", repeats=1)
    baseline.accept(tmp_path / "baseline.json", tmp_path / "run", "first")
    found, folder = baseline.load(tmp_path / "baseline.json")
    assert (found.run, folder) == ("run", tmp_path / "run")
    next((tmp_path / "run" / "cells").glob("*.parquet")).unlink()
    with pytest.raises(UserError, match="changed since it was accepted") as caught:
        baseline.load(tmp_path / "baseline.json")
    assert caught.value.exit_code == 4


def test_history_round_trip_and_concurrent_writers(old, tmp_path):
    path = tmp_path / "history.jsonl"
    entry = record.entry("run", old, "ok")
    assert entry.noise > 0
    assert {p.metric for p in entry.points} == {"tau", "speedup", "throughput"}
    writers = [threading.Thread(target=lambda: [history.append(path, entry) for _ in range(20)]) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert history.read(path) == [entry] * 160


def test_a_broken_history_line_is_named(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"schema": 1}\n')
    with pytest.raises(UserError, match=r"history\.jsonl:1: missing key 'run'"):
        history.read(path)


def test_pooled_tau_of_the_history_is_the_mean_over_settings_of_the_estimator(old):
    """Against the definition, from the raw rows."""
    rows = old.rows.merge(old.cells[["cell", "arm", "prompt_set"]], on="cell")
    own = rows[(rows.arm == "lilicorr") & (rows.prompt_set == "gsm8k")]
    wanted = 1 + own.correct_drafts.sum() / own.verify_ct.sum()
    found = [p for p in record.entry("run", old, "").points if p.metric == "tau" and p.arm == "lilicorr"]
    assert [p.value for p in found if p.setting.startswith("gsm8k")] == [pytest.approx(wanted, rel=1e-12)]


@pytest.mark.parametrize("source", ['name = "x"\nrepeats = 2\n[server]\n', 'name = "x"\n[server]\n'])
def test_one_more_repeat_is_written_into_the_sweep(source):
    assert tomllib.loads(with_repeats(source, 3))["repeats"] == 3


@pytest.mark.parametrize(
    ("option", "value"), [("alpha", 0.5), ("alpha", 0.0), ("tau_margin", 1.0), ("throughput_margin", -0.1)]
)
def test_a_share_out_of_range_names_its_option(tmp_path, option, value):
    with pytest.raises(UserError, match=rf"gate: --{option.replace('_', '-')}: {value:g} is out of range .write more"):
        command.gate(tmp_path, **{option: value})

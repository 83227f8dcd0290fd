"""The gate over whole runs: verdicts, exit codes, reports, history. Runs are synthetic, with known truth."""

import json
import math
import re
import threading
import tomllib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from harness.commands import gate as command
from harness.commands.gate import with_repeats
from harness.gate import baseline, history, record, report
from harness.gate.verdict import Rules, gate
from harness.load_results import load_results
from harness.stats.setting import Setting
from harness.store import run as store
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic

ARMS = ("ar", "dflash", "lilicorr")
# Synthetic requests are drawn anew in every allocation: standard errors are about 1 % for both metrics.
RULES = Rules(tau_margin=0.05, throughput_margin=0.1)


def make(
    folder,
    first_repeat=0,
    repeats=3,
    weights="old",
    slow=1.0,
    worse=1.0,
    fail="",
    device="synthetic",
    drop=lambda _: False,
):
    """Three allocations of three arms. ``slow`` and ``worse`` change lilicorr only; ``fail`` is an outcome for it.

    Cells that ``drop`` says yes to are planned and not there.
    """
    cells = [
        synthetic.cell("Qwen3-8B", arm, name, prompts=150, repeat=first_repeat + r, versions=(weights,))
        for r in range(repeats) for arm in ARMS for name in ("gsm8k", "mbpp")
    ]  # fmt: skip
    made = []
    for header, rows in synthetic.run(cells):
        header = replace(
            header, environment={**header.environment, "device_name": device}, started_at="2026-11-29T00:00:00Z"
        )
        if header.cell.arm == "lilicorr":
            header = replace(header, wall_s=header.wall_s * slow)
            rows = [slowed(worsened(row, worse), slow) for row in rows]
            if fail:
                header, rows = synthetic.failed(header, fail, "made to fail")
        if not drop(header.cell):
            made.append((header, rows))
    return load_results(str(synthetic.write(folder, made, planned=cells)))


def slowed(row, factor):
    return replace(
        row, sent_s=row.sent_s * factor, first_token_s=row.first_token_s * factor, done_s=row.done_s * factor
    )


def worsened(row, share):
    """Accepted drafts are lost with odds 1 - share, and as many more blocks write the same tokens in the same time."""
    lost = row.correct_drafts - round(row.correct_drafts * share)
    blocks = list(row.histogram)
    for _ in range(lost):
        longest = max(i for i, n in enumerate(blocks) if n)
        blocks[longest] -= 1
        blocks[longest - 1] += 1
    blocks[0] += lost
    counts = {"correct_drafts": row.correct_drafts - lost, "verify_ct": row.verify_ct + lost}
    return replace(row, **counts, histogram=tuple(blocks))


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
    frames = store.load(Path(old.name))
    rows = frames.rows.merge(frames.cells[["cell", "arm", "prompt_set"]], on="cell")
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


GONE = {
    "an arm": lambda c: c.arm == "lilicorr",
    "three of six cells of an arm": lambda c: c.arm == "lilicorr" and c.prompt_set == "gsm8k",
    "one cell": lambda c: (c.arm, c.prompt_set, c.repeat) == ("lilicorr", "gsm8k", 3),
    "all AR cells": lambda c: c.arm == "ar",
    "a prompt set": lambda c: c.prompt_set == "mbpp",
}


@pytest.mark.parametrize("metrics", [("tau", "throughput"), ("tau",)])
@pytest.mark.parametrize("gone", GONE)
def test_what_is_missing_is_named_and_never_ok(old, tmp_path, gone, metrics):
    outcome = gate(old, make(tmp_path, first_repeat=3, drop=GONE[gone]), replace(RULES, metrics=metrics))
    assert outcome.exit_code == 3
    text = report.markdown(outcome, "old", "new")
    assert "not run yet" in text
    assert "missing" in report.machine(outcome) or "not run yet" in report.machine(outcome)


@pytest.mark.parametrize("metrics", [("tau", "throughput"), ("tau",)])
@pytest.mark.parametrize("gone", GONE)
def test_what_the_candidate_does_not_even_plan_is_named(old, tmp_path, gone, metrics):
    """The sweep was changed: nothing is missing by the candidate's own plan."""
    kept = make(tmp_path / "whole", first_repeat=3)
    planned = [c for c in kept.planned if not GONE[gone](c)]
    made = [(h, r) for h, r in (store.read(f) for f in store.cell_files(tmp_path / "whole")) if h.cell in planned]
    small = load_results(str(synthetic.write(tmp_path / "small", made)))
    outcome = gate(old, small, replace(RULES, metrics=metrics))
    if gone in ("one cell",):  # a repeat fewer is fewer allocations, not another comparison
        assert outcome.exit_code == 0
    else:
        assert outcome.exit_code == 3
        assert any("not planned by the candidate" in t.reason for t in outcome.troubles)


@pytest.mark.parametrize("gone", GONE)
def test_a_baseline_that_lacks_cells_is_invalid(old, tmp_path, gone):
    lacking = make(tmp_path, first_repeat=3, drop=GONE[gone])
    outcome = gate(lacking, old, RULES)
    assert outcome.exit_code == 4
    assert all(t.reason.startswith("baseline: ") for t in outcome.troubles if t.code == 4)


def test_a_temperature_deleted_is_named(tmp_path):
    cells = [synthetic.cell("toy", arm, "gsm8k", t, prompts=12) for arm in ("ar", "dflash") for t in (0.0, 1.0)]
    whole = load_results(str(synthetic.write(tmp_path / "a", synthetic.run(cells))))
    cold = [(h, r) for h, r in synthetic.run(cells) if h.cell.temperature == 0]
    half = load_results(str(synthetic.write(tmp_path / "b", cold, planned=cells)))
    outcome = gate(whole, half, Rules(metrics=("tau",)))
    assert outcome.exit_code == 3
    assert any("T=1" in t.reason for t in outcome.troubles)


def test_a_missing_prompt_set_is_invalid(old, tmp_path):
    assert gate(old, make(tmp_path, first_repeat=3, fail="missing_set"), RULES).exit_code == 4


def test_a_run_without_a_plan_cannot_be_judged(old, tmp_path):
    make(tmp_path)
    (tmp_path / "plan.json").unlink()
    outcome = gate(old, load_results(str(tmp_path)), RULES)
    assert outcome.exit_code == 4
    assert "no plan.json" in outcome.troubles[0].reason


def test_a_regression_stays_one_beside_missing_cells(old, tmp_path):
    outcome = gate(old, make(tmp_path, first_repeat=3, worse=0.85, drop=GONE["one cell"]), RULES)
    assert outcome.exit_code == 1
    assert outcome.troubles


def test_throughput_without_ar_is_not_passed_over(tmp_path):
    cells = [synthetic.cell("toy", "dflash", "gsm8k", prompts=12, repeat=r) for r in range(3)]
    run = load_results(str(synthetic.write(tmp_path, synthetic.run(cells))))
    assert gate(run, run, Rules(metrics=("tau",))).exit_code == 0
    outcome = gate(run, run, Rules())
    assert outcome.exit_code == 3
    assert "no AR in the allocation" in outcome.troubles[0].reason


@pytest.mark.parametrize("repeat", [0, 1, 2])
def test_one_repeat_with_another_prompt_set_is_seen(old, tmp_path, repeat):
    """The gate looked at one cell a setting: this passed for two of three repeats."""
    run = make(tmp_path / "whole", first_repeat=3)
    made = [store.read(f) for f in store.cell_files(tmp_path / "whole")]
    place = ("dflash", 3 + repeat)
    odd = [(replace(h, cell=replace(h.cell, prompt_version="other")), r) for h, r in made]
    made = [other if (h.cell.arm, h.cell.repeat) == place else (h, r) for (h, r), other in zip(made, odd, strict=True)]
    with pytest.raises(UserError, match="prompt_version is"):
        gate(old, load_results(str(synthetic.write(tmp_path / "odd", made, planned=run.planned))), RULES)


def test_the_gate_and_the_history_read_the_numbers_of_the_tables(old):
    """One definition each: every point of the history is an estimate of `Results`."""
    points = record.entry("run", old, "").points
    for p in (p for p in points if p.setting != "pooled"):
        benchmark = p.setting.split(" ")[0]
        setting = Setting(target=p.target, arm=p.arm, benchmark=benchmark, temperature=0.0)
        assert p.value == old.get(setting, p.metric).value
    assert {p.metric for p in points} == {"tau", "speedup", "throughput"}


def test_every_judgement_rests_on_the_numbers_of_the_tables(old, tmp_path):
    """tau of a setting as the tables print it; speeds as they stand cell by cell, logs averaged over allocations."""
    new = make(tmp_path, first_repeat=3, slow=1.1, worse=0.9)
    single = [j for j in gate(old, new, RULES).judgements if j.scope != "pooled"]
    for j in single:
        benchmark = j.scope.split(" ")[0]
        if j.metric == "tau":
            at = Setting(target=j.target, arm=j.arm, benchmark=benchmark, temperature=0.0)
            wanted = new.get(at, "tau").value / old.get(at, "tau").value
        else:
            quantity = "throughput" if j.arm == "ar" else "speedup"
            logs = [
                np.log(c[quantity][(c.arm == j.arm) & (c.benchmark == benchmark)]) for c in (old.per_cell, new.per_cell)
            ]
            wanted = math.exp(logs[1].mean() - logs[0].mean())
        assert j.effect == pytest.approx(wanted - 1)
    assert {(j.arm, j.metric) for j in single} == {
        ("ar", "throughput"), *((arm, metric) for arm in ARMS[1:] for metric in ("tau", "throughput"))
    }  # fmt: skip


def test_unaudited_arms_carry_a_dagger(old):
    text = report.markdown(gate(old, old, RULES), "old", "old")
    assert "- \N{DAGGER} lilicorr of the candidate: unaudited" in text


def test_cells_of_no_plan_do_not_count_in_silence(old, tmp_path):
    """A seed that nobody planned, averaged into a judged setting."""
    run = make(tmp_path, first_repeat=3)
    foreign = [replace(c, seed=99) for c in run.planned if c.repeat == 3]
    for header, rows in synthetic.run(foreign):
        store.write_cell(tmp_path, replace(header, started_at="2026-11-29T00:00:00Z"), rows)
    outcome = gate(old, load_results(str(tmp_path)), RULES)
    assert outcome.exit_code == 4
    assert any("cells that are in no plan count in" in t.reason for t in outcome.troubles)

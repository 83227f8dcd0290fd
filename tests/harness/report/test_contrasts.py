"""Arm against arm: the change, its paired interval, the verdict."""

import numpy as np
import pytest

from harness.report import contrasts
from harness.report.sentences import percent, sentence
from harness.stats import resample
from harness.stats.blocks import blocks_per_s
from harness.stats.chosen import of_arms
from harness.stats.estimate import Estimate, Missing
from harness.stats.setting import AVERAGE, Setting
from harness.store import run as store
from sglang_specbench.errors import UserError
from tests.harness.report.made import results as made
from tests.harness.report.made import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return made(tmp_path_factory.mktemp("measured"), prompts=160)


def totals(frames, arm, prompt_set):
    """Per prompt: accepted drafts, blocks and completion tokens of the two repeats, and each repeat's wall."""
    cells = frames.cells[(frames.cells.arm == arm) & (frames.cells.prompt_set == prompt_set)]
    rows = frames.rows.merge(cells[["cell", "repeat"]], on="cell").sort_values(["repeat", "prompt_id"])
    return [
        (group.prompt_id.tolist(), group[["correct_drafts", "verify_ct"]].to_numpy(float))
        for _, group in rows.groupby("repeat")
    ]


def test_the_paired_interval_of_tau_is_that_of_resampling_the_prompts_of_both_arms_together(folder):
    """Recomputed from the rows, draw by draw, without the estimators."""
    frames = store.load(folder)
    found = next(c for c in contrasts.contrasts(made_from(folder), "lilicorr", "dspark")
                 if c.quantity == "tau" and c.setting.benchmark == "gsm8k")  # fmt: skip
    taus = {}
    for arm in ("lilicorr", "dspark"):
        per_repeat = []
        for prompts, sums in totals(frames, arm, "gsm8k"):
            correct, blocks = (resample.counts(tuple(prompts)) @ sums).T
            per_repeat.append(1 + correct / blocks)
        taus[arm] = np.mean(per_repeat, axis=0)
    change = 100 * (taus["lilicorr"] / taus["dspark"] - 1)
    assert found.change.value == pytest.approx(change[0])
    low, high = np.quantile(change[1:], [0.025, 0.975])
    assert found.change.low == pytest.approx(low, abs=0.1 * (high - low))
    assert found.change.high == pytest.approx(high, abs=0.1 * (high - low))
    alone = [100 * t / t[0] for t in taus.values()]
    unpaired = np.sqrt(sum(np.var(a[1:]) for a in alone))
    assert np.std(change[1:]) < 1.1 * unpaired


def made_from(folder):
    from harness.load_results import load_results

    return load_results(str(folder))


def test_blocks_a_second_are_counted_per_set_and_multiply_on_average(measured, folder):
    frames = store.load(folder)
    cells = frames.cells[(frames.cells.arm == "lilicorr") & (frames.cells.prompt_set == "gsm8k")]
    rates = [frames.rows[frames.rows.cell == c.cell].verify_ct.sum() / c.wall_s for c in cells.itertuples()]
    place = Setting(target="Qwen3-8B", arm="lilicorr", benchmark="gsm8k", temperature=0.0)
    harmonic = len(rates) / sum(1 / r for r in rates)  # block times are averaged over repeats
    assert blocks_per_s(made_from(folder), place).value == pytest.approx(harmonic)

    found = {c.quantity: c.change.value for c in contrasts.contrasts(measured, "lilicorr", "dspark")
             if c.setting.benchmark == AVERAGE}  # fmt: skip
    product = (1 + found["tau"] / 100) * (1 + found["blocks_per_s"] / 100)
    assert product == pytest.approx(1 + found["throughput"] / 100)


def test_an_arm_that_costs_less_and_accepts_less_is_told_so(measured):
    found = [c for c in contrasts.contrasts(measured, "dflash", "dspark") if c.setting.benchmark == AVERAGE]
    text = sentence(found)
    assert "DFlash is" in text
    assert "it accepts" in text
    assert "less and finishes" in text
    assert "more blocks a second." in text


def test_an_arm_is_not_told_apart_from_itself_and_a_missing_one_is_named(measured):
    same = contrasts.contrast(
        measured, Setting(target="Qwen3-8B", arm="lilicorr", benchmark="gsm8k", temperature=0.0), "lilicorr", "tau",
        {"tau": {}, "throughput": {}},
    )  # fmt: skip
    assert (same.verdict, same.change.value) == ("equal", 0)
    gone = contrasts.contrast(
        measured, Setting(target="Qwen3-8B", arm="lilicorr", benchmark="gsm8k", temperature=0.0), "domino", "tau",
        {"tau": {}, "throughput": {}},
    )  # fmt: skip
    assert gone.verdict == "not measured"
    assert isinstance(gone.change, Missing)
    assert gone.reason.startswith("domino: ")


def test_a_size_is_written_without_its_sign_and_its_bounds_turned():
    assert percent(Estimate(-3.0, -4.0, 0.5, 9, "")) == "3.0 % [-0.5, 4.0]"
    assert percent(Estimate(-3.0, -4.0, 0.5, 9, ""), signed=True) == "-3.0 % [-4.0, 0.5]"


def test_chosen_arms_keep_their_numbers_and_the_others_do_not_compete(measured):
    few = of_arms(measured, "lilicorr, dspark")
    assert few.arms() == ["ar", "lilicorr", "dspark"]
    place = Setting(target="Qwen3-8B", arm="lilicorr", benchmark="gsm8k", temperature=0.0)
    assert few.get(place, "speedup") == measured.get(place, "speedup")
    with pytest.raises(UserError, match=r"no arm 'dsprak'.*'dspark'"):
        of_arms(measured, "dsprak")

"""Head cost, closure, noise floor and ties against numbers worked by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from harness.stats import closure, headcost, noise, ties
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting

AT = Setting(target="T", arm="lilicorr", benchmark="gsm8k", temperature=0.0)


def at(arm, benchmark="gsm8k", **changes):
    return Setting(target="T", arm=arm, benchmark=benchmark, temperature=0.0, **changes)


def blocks(arm, times, allocation="a"):
    return {(at(arm, f"b{i}"), allocation): np.array([t]) for i, t in enumerate(times)}


def test_head_cost_is_a_difference_of_medians_not_a_median_of_differences():
    """Medians 11 and 8: head 3; the median of the differences (1, 3, 2) would be 2."""
    found = headcost.head_costs({**blocks("lilicorr", [9, 11, 12]), **blocks("dflash", [8, 8, 10])})
    cost = found[headcost.place("T", "lilicorr")]
    assert cost["head_ms"][0] == pytest.approx(3)
    assert cost["head_share_pct"][0] == pytest.approx(100 * 3 / 11)


def test_humaneval_other_temperatures_loads_and_averages_stay_out():
    outside = {
        (at("lilicorr", "humaneval"), "a"): np.array([99.0]),
        (at("lilicorr", "b9", concurrency=4), "a"): np.array([99.0]),
        (at("lilicorr", "b9", tier="mixed"), "a"): np.array([99.0]),
        (at("lilicorr", AVERAGE), "a"): np.array([99.0]),
        (Setting(target="T", arm="lilicorr", benchmark="b9", temperature=1.0), "a"): np.array([99.0]),
    }
    found = headcost.head_costs({**blocks("lilicorr", [9.0]), **blocks("dflash", [8.0]), **outside})
    assert found[headcost.place("T", "lilicorr")]["head_ms"][0] == pytest.approx(1)


def test_head_cost_is_taken_within_an_allocation_over_shared_benchmarks():
    """Allocation b is 10 % slower throughout: heads of 1.0 and 1.1; across allocations they would be 0.2 and 1.9."""
    found = headcost.head_costs(
        {
            **blocks("lilicorr", [9, 9, 50]), **blocks("dflash", [8, 8]),
            **blocks("lilicorr", [9.9, 9.9], "b"), **blocks("dflash", [8.8, 8.8], "b"),
        }
    )  # fmt: skip
    assert found[headcost.place("T", "lilicorr")]["head_ms"][0] == pytest.approx(1.05)


def test_without_a_control_there_is_a_block_time_and_no_head():
    results = Results(name="r")
    headcost.add(results, blocks("lilicorr", [9.0, 10.0]), {})
    assert results.get(headcost.place("T", "lilicorr"), "median_block_ms").value == pytest.approx(9.5)
    assert results.get(headcost.place("T", "lilicorr"), "head_ms") == Missing(
        "no dflash control in the same allocation"
    )


TOTALS = {
    "completion": 1000.0, "requests": 10.0, "counted_completion": 1000.0, "counted": 10.0, "correct": 800.0,
    "blocks": 200.0, "decode": 2.0, "counted_decode": 2.0, "prefill": 0.5,
}  # fmt: skip


def test_closure_factors_rebuild_the_throughput():
    """rate times all five factors times c is completion / wall."""
    f = closure.factors(TOTALS, 1.0, concurrency=4)
    product = float(f["rate"]) * math.prod(float(f[f"factor_{name}"]) for name in closure.FACTORS)
    assert 4 * product == pytest.approx(1000 / 1.0)
    assert float(f["factor_truncation"]) == pytest.approx(990 / 1000)
    assert float(f["factor_gap"]) == pytest.approx(2.5 / 4)


def test_closure_of_an_ar_cell_has_no_truncation():
    ar = {**TOTALS, "blocks": 0.0, "counted": 0.0, "counted_completion": 0.0, "correct": 0.0, "counted_decode": 0.0}
    f = closure.factors(ar, 2.5, concurrency=1)
    assert float(f["factor_truncation"]) == float(f["factor_uncounted"]) == 1
    assert float(f["rate"]) * float(f["factor_first_token"]) * float(f["factor_prefill"]) == pytest.approx(1000 / 2.5)


def results_with(values):
    lines = [
        {"target": "T", "temperature": 0.0, "concurrency": 1, "arm": arm, "benchmark": "b", "tier": "", "seed": 42,
         "repeat": i, "allocation": f"a{i}", "throughput": v}
        for arm, repeats in values.items() for i, v in enumerate(repeats)
    ]  # fmt: skip
    return Results(name="r", per_cell=pd.DataFrame(lines))


def test_noise_floor_of_one_pair_is_its_closed_form():
    """Two cells 2 % apart: s = ln(1.02) / sqrt(2), df 1, floor = t(0.975, 1) ln(1.02)."""
    floor = noise.floors(results_with({"ar": [100.0, 102.0]}), "throughput")[("T", 0.0, 1)]
    assert floor.value == pytest.approx(stats.t.ppf(0.975, 1) * math.log(1.02))
    assert floor.n == 1
    assert floor.low < floor.value < floor.high


def test_a_cell_without_a_twin_says_nothing_about_noise():
    assert noise.floors(results_with({"ar": [100.0], "dflash": [300.0]}), "throughput") == {}
    assert noise.floors(Results(name="paper"), "throughput") == {}


def test_the_floor_holds_95_per_cent_of_new_pairs():
    """200 arms x 2 repeats give s; of 2,000 new pairs 95 % lie under the floor.

    The estimate of s has a relative deviation of 5 %, which moves the share by 1.1 points; with 0.5 points of
    binomial noise, 3.5 points are about three deviations (odds 0.003); seeded.
    """
    rng = np.random.default_rng(8)
    known = {f"arm{i}": list(np.exp(0.01 * rng.standard_normal(2))) for i in range(200)}
    floor = noise.floors(results_with(known), "throughput")[("T", 0.0, 1)]
    new = np.abs(0.01 * np.diff(rng.standard_normal((2000, 2)), axis=1))
    assert (new < floor.value).mean() == pytest.approx(0.95, abs=0.035)


@pytest.mark.parametrize(("value", "verdict"), [(101.1, "win"), (101.0, "tie"), (99.0, "tie"), (98.9, "trail")])
def test_the_edges_of_the_band_are_ties(value, verdict):
    assert ties.judge(value, 100.0, 0.01) == verdict


def test_places_name_the_best_rival_and_what_cannot_be_judged():
    results = Results(name="r")
    for arm, value in (("lilicorr", 103.0), ("dflash2", 100.0), ("dflash", 90.0), ("ar", 999.0)):
        results.put(at(arm), "throughput", Estimate(value, None, None, 1, ""))
    results.put(at("lilicorr", "mbpp"), "throughput", Missing("oom"))
    judged, open_ = ties.places(results, [AT, at("lilicorr", "mbpp")], "throughput")
    assert [(p.rival, p.verdict) for p in judged] == [("dflash2", "win")]
    assert judged[0].lead == pytest.approx(0.03)
    assert open_ == {at("lilicorr", "mbpp"): "oom"}
    wide, _ = ties.places(results, [AT], "throughput", band=lambda s: Estimate(0.05, None, None, 0, "floor"))
    assert ties.count(wide) == (0, 1, 0)

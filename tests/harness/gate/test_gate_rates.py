"""Simulated histories with known truth: false alarms and detections of the gate and of the change points.

Assumed noise: 0.5 % standard deviation of log throughput between allocations; accepted drafts a block vary by 25 %
from prompt to prompt and by 5 % from run to run, over 2,000 prompts. Rates are binomial over N simulated decisions;
each bound below is the promised rate, and the odds that a gate which just meets its promise fails the test are stated
with it.
"""

import math

import numpy as np
import pytest
from scipy import stats

from harness.gate.changes import change_points
from harness.gate.effects import log_tau_influence, tau_change, tau_effect, throughput_effect
from harness.gate.judgement import judge, spent

SD, ALLOCATIONS, PROMPTS = 0.005, 3, 2000
ALPHA, MARGIN_TPUT, MARGIN_TAU = 0.01, math.log(1.03), math.log(1.01)
N = 2000


def noise(rng, tails, size):
    """Unit-variance noise: normal, or Student t with 4 degrees of freedom."""
    if tails == "normal":
        return rng.standard_normal(size)
    return rng.standard_t(4, size) / math.sqrt(2)


def throughput_verdict(rng, step, tails="normal", looks=2):
    """Up to two runs of the candidate against a baseline of two runs; relative to AR, so a bad node cancels."""
    baseline = noise(rng, tails, 2 * ALLOCATIONS) * SD
    candidate = noise(rng, tails, looks * ALLOCATIONS) * SD + step
    verdict = "inconclusive"
    for look in range(1, looks + 1):
        effect = throughput_effect(baseline, candidate[: look * ALLOCATIONS])
        verdict, _, _ = judge(effect, MARGIN_TPUT, spent(ALPHA, comparisons=1, looks=looks))
        if verdict != "inconclusive":
            break
    return verdict


def tau_verdict(rng, step, looks=2):
    prompts = list(range(PROMPTS))
    blocks = rng.integers(20, 60, PROMPTS).astype(float)
    level = 3.0 * np.exp(0.25 * rng.standard_normal(PROMPTS))
    sides = []
    for shift in (0.0, step):
        own = np.exp(0.05 * rng.standard_normal(PROMPTS))
        tau = (1 + level * own) * math.exp(shift)
        sides.append(log_tau_influence((tau - 1) * blocks, blocks))
    effect = tau_effect([tau_change(prompts, *sides)])
    return judge(effect, MARGIN_TAU, spent(ALPHA, comparisons=1, looks=looks))[0]


def rate(verdicts, wanted):
    return sum(v == wanted for v in verdicts) / len(verdicts)


@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_no_change_is_called_a_regression_at_most_once_in_a_hundred(tails):
    """If the true rate were 1 %, more than 1.6 % in 2,000 has odds below 0.5 % (binomial)."""
    rng = np.random.default_rng(1)
    seen = rate([throughput_verdict(rng, 0.0, tails) for _ in range(N)], "regression")
    assert stats.binom.sf(0.016 * N, N, ALPHA) < 0.005
    assert seen <= 0.016


def test_three_per_cent_throughput_step_is_found_within_two_runs():
    """At a drop of exactly the margin. Missed with odds alpha; 98 % of 500 demanded."""
    rng = np.random.default_rng(2)
    assert rate([throughput_verdict(rng, math.log(0.97)) for _ in range(500)], "regression") >= 0.98


def test_one_bad_node_does_not_fail_the_arm():
    """A node 10 % slow slows AR as well; the arm is judged relative to AR of its allocation."""
    rng = np.random.default_rng(4)
    slow = math.log(0.9)
    verdicts = []
    for _ in range(500):
        ar = np.array([0, 0, slow]) + SD / 2 * rng.standard_normal(3)
        arm = np.array([0, 0, slow]) + SD / 2 * rng.standard_normal(3)
        baseline = SD * rng.standard_normal(6)
        verdicts.append(judge(throughput_effect(baseline, arm - ar), MARGIN_TPUT, ALPHA / 2)[0])
    assert rate(verdicts, "regression") <= 0.03  # rate 1 % would exceed 3 % in 500 with odds below 1e-4


def test_tau_false_alarms_and_a_step_of_exactly_one_per_cent():
    """False alarms as above; the standard error is 0.12 %, so the step is found at the first look."""
    rng = np.random.default_rng(5)
    assert rate([tau_verdict(rng, 0.0) for _ in range(N)], "regression") <= 0.016
    assert rate([tau_verdict(rng, math.log(0.99)) for _ in range(300)], "regression") >= 0.98


def history(rng, days, drift=0.0, step_at=None, step=0.0, tails="normal"):
    level = np.zeros(days)
    if step_at is not None:
        level[step_at:] += step
    level += drift * np.arange(days).clip(min=0)
    return level + SD / math.sqrt(ALLOCATIONS) * noise(rng, tails, days)


@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_steady_histories_are_split_at_most_once_in_a_hundred(tails):
    """1 % of 1,000 series of 30 runs; a true rate of 1 % would exceed 2 % with odds below 0.3 %."""
    rng = np.random.default_rng(6)
    floor = SD / math.sqrt(ALLOCATIONS)
    split = sum(bool(change_points(history(rng, 30, tails=tails), floor)) for _ in range(1000))
    assert split <= 20


def test_slow_drift_is_found_within_ten_runs():
    """0.2 % a day after 20 steady days: within ten runs each of 200 histories shows a downward change."""
    rng = np.random.default_rng(7)
    floor = SD / math.sqrt(ALLOCATIONS)
    found = 0
    for _ in range(200):
        series = history(rng, 30)
        series[20:] += -0.002 * np.arange(1, 11)
        found += any(c.size < 0 and c.at >= 17 for c in change_points(series, floor))
    assert found >= 196


def test_a_step_is_located():
    rng = np.random.default_rng(8)
    changes = change_points(history(rng, 40, step_at=25, step=math.log(0.97)), SD / math.sqrt(ALLOCATIONS))
    assert [abs(c.at - 25) <= 1 for c in changes] == [True]
    assert changes[0].size == pytest.approx(math.log(0.97), abs=4 * SD / math.sqrt(10))


def test_short_histories_and_constant_ones_say_nothing():
    assert change_points([0.0] * 7, 0.0) == []
    assert change_points([0.0] * 20, 0.0) == []

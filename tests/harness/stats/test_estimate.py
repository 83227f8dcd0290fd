"""Values, intervals, and what happens without them."""

import numpy as np

from harness.stats.estimate import Estimate, Missing, from_draws


def test_limits_are_order_statistics():
    """Of 999 replicates the 25th and the 975th: exactly 2.5 % of (999 + 1) on each side."""
    rng = np.random.default_rng(0)
    replicates = rng.permutation(np.arange(1.0, 1000.0))
    assert from_draws(np.append(500.0, replicates), 10, "m") == Estimate(500.0, 25.0, 975.0, 10, "m")


def test_not_finite_is_missing_with_the_method_named():
    assert from_draws(np.array([np.nan, 1.0]), 5, "tau") == Missing("tau: nothing to divide by")


def test_replicates_without_a_denominator_are_left_out():
    found = from_draws(np.array([2.0, np.inf, np.nan, 1.0, 3.0]), 5, "m")
    assert (found.low, found.high) == (1.0, 3.0)


def test_no_replicates_or_one_prompt_no_interval():
    assert from_draws(np.array([2.0]), 5, "m").low is None
    assert from_draws(np.array([2.0, 1.0, 3.0]), 1, "m").high is None

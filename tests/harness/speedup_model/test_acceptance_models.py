"""Fits and the way back: on curves that a model made, on simulated blocks, and against other implementations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from harness.speedup_model.acceptance_models import (
    alpha_of,
    fitted_alpha,
    fitted_markov,
    markov_survival,
    markov_tokens,
    miss,
    reached,
    wilson,
)
from harness.speedup_model.speedup import autoregressive_draft, expected_tokens, iid_survival, speedup

chances = st.floats(0.01, 0.99)


@settings(deadline=None)
@given(chances, st.integers(1, 15))
def test_an_independent_curve_gives_its_alpha_back(alpha, drafted):
    assert fitted_alpha(np.array(iid_survival(alpha, drafted))) == pytest.approx(alpha)


@settings(deadline=None)
@given(chances, chances, st.integers(2, 15))
def test_a_markov_curve_gives_its_chances_back(first, again, drafted):
    found = fitted_markov(np.array(markov_survival(first, again, drafted)))
    assert [float(x) for x in found] == pytest.approx([first, again])


@settings(deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 20))
def test_the_markov_closed_form_is_the_sum(first, again, drafted):
    assert markov_tokens(first, again, drafted) == pytest.approx(
        expected_tokens(markov_survival(first, again, drafted)), rel=1e-6
    )


@settings(deadline=None)
@given(chances, st.integers(1, 15))
def test_equal_chances_are_independence(alpha, drafted):
    assert markov_survival(alpha, alpha, drafted) == pytest.approx(iid_survival(alpha, drafted))


def test_fits_on_simulated_blocks_of_a_chain():
    """100,000 blocks, coin by coin; five standard errors: odds below 1 in 10^6 for each of the three."""
    rng, first, again, drafted, blocks = np.random.default_rng(7), 0.6, 0.85, 15, 100_000
    coins = rng.random((blocks, drafted)) < np.array([first, *[again] * (drafted - 1)])
    accepted = coins.cumprod(axis=1).sum(axis=1)
    survival = np.array([(accepted > k).mean() for k in range(drafted)])
    a, b = fitted_markov(survival)
    assert abs(a - first) < 5 * np.sqrt(first * (1 - first) / blocks)
    trials = blocks * survival[:-1].sum()
    assert abs(b - again) < 5 * np.sqrt(again * (1 - again) / trials)
    tokens = 1 + accepted
    assert abs(tokens.mean() - markov_tokens(first, again, drafted)) < 5 * tokens.std() / np.sqrt(blocks)


def test_independence_misses_a_chain_by_a_known_amount():
    measured = np.array(markov_survival(0.6, 0.9, 3))  # .6, .54, .486
    alpha = float(fitted_alpha(measured))
    assert alpha == pytest.approx((0.6 + 0.54 + 0.486) / (1 + 0.6 + 0.54))
    assert float(reached(measured)) == pytest.approx(2.14)
    off = miss(iid_survival(alpha, 3), measured)
    assert (off.slot, off.error) == (1, pytest.approx(alpha - 0.6))
    assert miss(markov_survival(0.6, 0.9, 3), measured).error == pytest.approx(0)


def test_a_curve_that_never_starts():
    first, again = fitted_markov(np.zeros(15))
    assert first == 0
    assert np.isnan(again)
    assert fitted_alpha(np.zeros(15)) == 0


@settings(deadline=None)
@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_is_scipys(successes, trials):
    successes = min(successes, trials)
    theirs = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    assert wilson(successes, trials) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@settings(deadline=None)
@given(chances, st.integers(1, 15), st.floats(0, 0.3))
def test_alpha_from_a_speedup_is_the_way_back(alpha, drafted, cost):
    draft = autoregressive_draft(cost)
    measured = speedup(iid_survival(alpha, drafted), draft)
    assert alpha_of(measured, lambda a: speedup(iid_survival(a, drafted), draft)) == pytest.approx(alpha, abs=1e-9)


def test_no_alpha_explains_more_than_every_draft_accepted():
    assert alpha_of(5.1, lambda a: speedup(iid_survival(a, 4), autoregressive_draft(0))) is None
    assert alpha_of(0.7, lambda a: speedup(iid_survival(a, 4), autoregressive_draft(0.1))) is None

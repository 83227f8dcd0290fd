"""The speedup formulas against their worked numbers, a brute-force sum and a simulation of blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.speedup_model.speedup import (
    autoregressive_draft,
    best_length,
    expected_tokens,
    free_verification,
    histogram_survival,
    iid_survival,
    linear_verification,
    parallel_draft,
    speedup,
)


@pytest.mark.parametrize(
    ("alpha", "drafted", "cost", "tokens", "gain"),
    [(0.8, 4, 0.05, 3.36, 2.80), (0.8, 8, 0.05, 4.33, 3.09), (0.8, 4, 0.2, 3.36, 1.87), (0.6, 4, 0.05, 2.31, 1.92),
     (0.75, 7, 0.02, 3.60, 3.16)],
)  # fmt: skip
def test_worked_numbers(alpha, drafted, cost, tokens, gain):
    survival = iid_survival(alpha, drafted)
    assert round(expected_tokens(survival), 2) == tokens
    assert round(speedup(survival, autoregressive_draft(cost)), 2) == gain


@pytest.mark.parametrize(
    ("alpha", "cost", "drafted", "gain"), [(0.8, 0.05, 8, 3.09), (0.8, 0.2, 4, 1.87), (0.6, 0.05, 4, 1.92)]
)
def test_best_lengths(alpha, cost, drafted, gain):
    best, value = best_length(iid_survival(alpha, 40), autoregressive_draft(cost))
    assert (best, round(value, 2)) == (drafted, gain)


@given(st.floats(0, 0.99), st.integers(0, 20))
def test_the_iid_case_is_the_closed_form(alpha, drafted):
    """Arxiv 2211.17192, equation 1."""
    assert expected_tokens(iid_survival(alpha, drafted)) == pytest.approx((1 - alpha ** (drafted + 1)) / (1 - alpha))


def test_a_histogram_gives_tau():
    histogram = [3, 0, 5, 2]
    assert expected_tokens(histogram_survival(histogram)) == pytest.approx(1 + (5 * 2 + 2 * 3) / 10)
    assert histogram_survival(histogram) == [0.7, 0.7, 0.2]


def test_a_parallel_drafter_pays_once():
    survival = iid_survival(0.8, 15)
    assert speedup(survival, parallel_draft(0.1)) == pytest.approx(expected_tokens(survival) / 1.1)
    assert speedup(survival, parallel_draft(0.1, head=0.01)) == pytest.approx(expected_tokens(survival) / 1.25)
    assert best_length(survival, parallel_draft(0.1))[0] == 15


def test_costly_verification_shortens_the_best_block():
    survival, draft = iid_survival(0.8, 30), parallel_draft(0.1)
    lengths = [best_length(survival, draft, linear_verification(slope))[0] for slope in (0, 0.05, 0.2, 2)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 0  # a draft that never pays is not made
    assert free_verification(7) == 1

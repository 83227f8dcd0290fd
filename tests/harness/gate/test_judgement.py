"""The rule of one comparison, by hand: where a drop is excluded, where it is there, and where nothing is known."""

import math

import pytest
from scipy import stats

from harness.gate.judgement import Effect, judge, spent

MARGIN = 0.03


def effect(value, se=0.01, df=10):
    return Effect(value=value, se=se, df=df)


def test_the_limits_are_one_sided_and_of_student():
    """95 % one-sided at ten degrees of freedom: 1.812 standard errors (any table of t)."""
    verdict, low, high = judge(effect(0.0), MARGIN, 0.05)
    assert (low, high) == (pytest.approx(-0.01812, abs=1e-5), pytest.approx(0.01812, abs=1e-5))
    assert verdict == "ok"
    assert judge(effect(0.0, df=math.inf), MARGIN, 0.05)[1] == pytest.approx(-0.01 * stats.norm.ppf(0.95))


@pytest.mark.parametrize(
    ("value", "se", "verdict"),
    [
        (0.0, 0.01, "ok"),
        (0.5, 0.01, "ok"),  # better
        (-0.01, 0.005, "ok"),  # a real drop, smaller than the margin
        (0.0, 0.05, "inconclusive"),
        (-0.05, 0.05, "inconclusive"),
        (0.01, 0.05, "inconclusive"),
        (0.0, 1.0, "inconclusive"),
        (-0.05, 0.01, "regression"),
        (-0.03, 0.01, "regression"),  # it is there, and may be as large as the margin
    ],
)
def test_each_verdict(value, se, verdict):
    assert judge(effect(value, se), MARGIN, 0.05)[0] == verdict


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.0, "ok"), (-0.0299, "ok"), (-MARGIN, "regression"), (-1.0, "regression")]
)
def test_what_is_known_exactly_has_no_interval(value, verdict):
    assert judge(effect(value, se=0.0), MARGIN, 0.01) == (verdict, value, value)


def test_a_drop_that_may_be_none_is_no_regression():
    """The upper limit at exactly zero."""
    assert judge(effect(-0.5, se=0.5 / stats.t.isf(0.05, 10)), MARGIN, 0.05)[0] == "inconclusive"


@pytest.mark.parametrize(("margin", "alpha"), [(0.0, 0.01), (-0.1, 0.01), (0.03, 0.0), (0.03, 0.5), (0.03, -0.1)])
def test_what_no_rule_can_be_made_of(margin, alpha):
    with pytest.raises(ValueError, match="must be in"):
        judge(effect(0.0), margin, alpha)


def test_the_odds_are_shared_out_over_comparisons_and_looks():
    assert spent(0.01, comparisons=5, looks=2) == pytest.approx(0.001)

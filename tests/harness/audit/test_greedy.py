"""First differences at temperature 0: a near-tie is not a bug, a clear margin is."""

import math

import pytest

from harness.audit.greedy import compare, first_divergence

IDS, MARGINS = (5, 6, 7, 8), (2.0, 1e-5, 3.0, 0.5)


@pytest.mark.parametrize(
    ("seen", "position", "margin"),
    [((5, 9, 7, 8), 1, 1e-5), ((5, 6, 9, 9), 2, 3.0), ((5, 6, 7), 3, math.inf), ((5, 6, 7, 8, 9), 4, math.inf)],
)
def test_the_first_difference_and_its_margin(seen, position, margin):
    found = first_divergence("x", IDS, MARGINS, seen)
    assert (found.position, found.margin) == (position, margin)


def test_equal_outputs_do_not_diverge():
    assert first_divergence("x", IDS, MARGINS, IDS) is None


def test_only_clear_margins_are_bugs():
    expected = dict.fromkeys("abc", (IDS, MARGINS))
    seen = {"a": IDS, "b": (5, 9, 1, 1), "c": (5, 6, 7, 9)}
    result = compare(expected, seen, control={"a": IDS, "b": (5, 9, 7, 8), "c": IDS}, concurrency=4, dtype="float32")
    assert [d.prompt for d in result.divergences] == ["b", "c"]
    assert [d.prompt for d in result.bugs] == ["c"]
    assert [d.prompt for d in result.control] == ["b"]
    assert (result.prompts, result.tokens) == (3, 12)

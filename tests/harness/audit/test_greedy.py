"""First differences at temperature 0: a near-tie is not a bug, a clear margin is."""

import math

import numpy as np
import pytest

from harness.audit.greedy import compare, first_divergence
from harness.audit.target_distribution import Raw

IDS = (5, 6, 7, 8)
# the best token of each place, token 9 so far below it, and 3 at two nats more
PLACES = [
    Raw(np.array([t, 9, 3]), np.array([-0.5, -0.5 - m, -2.5 - m]))
    for t, m in zip(IDS, (2.0, 1e-5, 3.0, 0.5), strict=True)
]


@pytest.mark.parametrize(
    ("seen", "position", "margin"),
    [
        ((5, 9, 7, 8), 1, 1e-5),
        ((5, 3, 7, 8), 1, 2 + 1e-5),  # a near-tie of the two best excuses neither a third token
        ((5, 4, 7, 8), 1, math.inf),  # nor one that is not among the likeliest
        ((5, 6, 9, 9), 2, 3.0),
        ((5, 6, 7), 3, math.inf),
        ((5, 6, 7, 8, 9), 4, math.inf),
    ],
)
def test_the_first_difference_and_its_margin(seen, position, margin):
    found = first_divergence("x", IDS, PLACES, seen)
    assert found.position == position
    assert found.margin == pytest.approx(margin)


def test_equal_outputs_do_not_diverge():
    assert first_divergence("x", IDS, PLACES, IDS) is None


def test_only_clear_margins_are_bugs():
    expected = dict.fromkeys("abc", (IDS, PLACES))
    seen = {"a": IDS, "b": (5, 9, 1, 1), "c": (5, 6, 7, 9)}
    result = compare(expected, seen, control={"a": IDS, "b": (5, 9, 7, 8), "c": IDS}, concurrency=4, dtype="float32")
    assert [d.prompt for d in result.divergences] == ["b", "c"]
    assert [d.prompt for d in result.bugs] == ["c"]
    assert [d.prompt for d in result.control] == ["b"]
    assert (result.prompts, result.tokens) == (3, 4 + 2 + 4)  # what follows a first difference is not compared

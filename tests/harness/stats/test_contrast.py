"""What a change tells: more, less, equal, or nothing."""

import pytest

from harness.stats.contrast import told
from harness.stats.estimate import Estimate


@pytest.mark.parametrize(
    ("low", "high", "floor", "found"),
    [
        (1.1, 3, 0.0, "more"),
        (-3, -1.1, 0.0, "less"),
        (-0.9, 0.9, 0.0, "equal"),
        (0.5, 3, 0.0, "open"),
        (-3, 3, 0.0, "open"),
        (None, None, 0.0, "open"),  # one prompt: the value alone tells nothing
        (1.1, 3, 0.02, "open"),  # beyond 1 %, and no more than launches differ by
        (2.1, 3, 0.02, "more"),
        (-3, -2.1, 0.02, "less"),
        (-0.9, 0.9, 0.5, "equal"),
        (-35, 10, 0.5, "open"),  # a floor of 50 % made a third slower "equally fast"
    ],
)
def test_only_a_whole_interval_on_one_side_of_the_band_tells_something(low, high, floor, found):
    assert told(Estimate(2.0, low, high, 30, ""), floor)[0] == found


def test_a_wide_floor_is_named():
    assert told(Estimate(-10.0, -35, 10, 30, ""), 0.5)[1].endswith("or within what launches differ by, 50 %")

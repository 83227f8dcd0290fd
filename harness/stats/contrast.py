"""One number against another, paired by prompts where both were measured on the same ones, and what that tells.

Draws of two settings share their resamples exactly when their prompt ids are the same (``resample``), so their ratio is
paired without further ado; otherwise the draws are independent, and so is the interval.
"""

from typing import Literal

import numpy as np

from harness.stats.estimate import Draws, Estimate, Missing, from_draws
from harness.stats.results import Key, Results
from harness.stats.ties import BAND

Told = Literal["more", "less", "equal", "open"]


def relative(a: Results, key_a: Key, b: Results, key_b: Key) -> Estimate | Missing:
    """``100 (a / b - 1)``: per cent by which ``a`` is above ``b``.

    A printed number stands still: the interval is then the other side's alone, and there is none between two of them.
    """
    first, second = a.get(*key_a), b.get(*key_b)
    if isinstance(first, Missing) or isinstance(second, Missing):
        return first if isinstance(first, Missing) else second
    ratio = _draws(a, key_a, first) / _draws(b, key_b, second)
    return from_draws(100 * (ratio - 1), max(first.n, second.n), f"100 (a / b - 1) of {key_a[1]}")


def told(change: Estimate, floor: float = 0.0) -> tuple[Told, str]:
    """What ``change`` (per cent) tells, under a relative noise floor between launches.

    *more* or *less*: the whole interval lies beyond 1 % and beyond the floor. *equal*: it lies inside 1 %; a wide
    floor is ignorance, and makes nothing equal. *open*: neither, or there is no interval.
    """
    band, reach = 100 * BAND, 100 * max(BAND, floor)
    if change.low is None or change.high is None:
        return "open", "no interval"
    if change.low > reach:
        return "more", f"beyond the band of {reach:.2g} %"
    if change.high < -reach:
        return "less", f"beyond the band of {reach:.2g} %"
    if -band <= change.low and change.high <= band:
        return "equal", f"within the band of {band:.2g} %"
    wide = "of 1 %" if reach == band else f"of 1 %, or within what launches differ by, {reach:.2g} %"
    return "open", f"the interval reaches across an edge of the band {wide}"


def _draws(results: Results, key: Key, estimate: Estimate) -> Draws:
    return results.draws.get(key, np.array([estimate.value]))

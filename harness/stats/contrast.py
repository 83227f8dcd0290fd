"""One number against another, paired by prompts where both were measured on the same ones.

Draws of two settings share their resamples exactly when their prompt ids are the same (``resample``), so their ratio is
paired without further ado; otherwise the draws are independent, and so is the interval.
"""

import numpy as np

from harness.stats.estimate import Draws, Estimate, Missing, from_draws
from harness.stats.results import Key, Results


def relative(a: Results, key_a: Key, b: Results, key_b: Key) -> Estimate | Missing:
    """``100 (a / b - 1)``: per cent by which ``a`` is above ``b``.

    A printed number stands still: the interval is then the other side's alone, and there is none between two of them.
    """
    first, second = a.get(*key_a), b.get(*key_b)
    if isinstance(first, Missing) or isinstance(second, Missing):
        return first if isinstance(first, Missing) else second
    ratio = _draws(a, key_a, first) / _draws(b, key_b, second)
    return from_draws(100 * (ratio - 1), max(first.n, second.n), f"100 (a / b - 1) of {key_a[1]}")


def _draws(results: Results, key: Key, estimate: Estimate) -> Draws:
    return results.draws.get(key, np.array([estimate.value]))

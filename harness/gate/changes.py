"""Change points in a history: what every single gate let through, seen over many runs.

A series is one arm's pooled metric (log scale), one value a run. PELT with a squared-error cost (ruptures; Killick,
Fearnhead and Eckley 2012) splits it where the mean moves. The penalty is sigma^2 z^2 with z the normal quantile at
odds / (2 n): by the union bound over the n places and two directions a series without a change is split with odds of at
most ``odds``. Sigma is the larger of the measured noise floor and the spread of successive differences (median based,
so that steps do not inflate it). A new level must hold for `MIN_RUNS` runs: one bad run is not a change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

MIN_RUNS = 3
MIN_HISTORY = 8  # runs below which no statement is made


@dataclass(frozen=True, kw_only=True)
class Change:
    """The mean moved between run ``at - 1`` and run ``at``, by ``size`` (log ratio; negative is worse)."""

    at: int
    size: float


def change_points(values: Sequence[float], floor_sd: float, odds: float = 0.01) -> list[Change]:
    """Where the level of ``values`` (logs, in time order) moved; empty for a short or steady series."""
    import ruptures

    series = np.asarray(values, dtype=float)
    n = len(series)
    if n < MIN_HISTORY:
        return []
    sigma = max(floor_sd, _difference_sd(series))
    if sigma == 0:
        return []
    penalty = sigma**2 * float(stats.norm.isf(odds / (2 * n))) ** 2
    ends = ruptures.Pelt(model="l2", min_size=MIN_RUNS, jump=1).fit(series).predict(pen=penalty)
    starts = [0, *ends[:-1]]
    means = [float(series[a:b].mean()) for a, b in zip(starts, ends, strict=True)]
    return [Change(at=at, size=means[i + 1] - means[i]) for i, at in enumerate(ends[:-1])]


def _difference_sd(series: "np.typing.NDArray[np.float64]") -> float:
    """Standard deviation of one value from successive differences, by their median absolute value."""
    return float(np.median(np.abs(np.diff(series)))) / (float(stats.norm.isf(0.25)) * math.sqrt(2))

"""A number with its doubt and its definition, or the reason why there is none.

Everything past the store is one of the two. Draws are vectors whose first element is the value itself and whose
other elements are its bootstrap replicates (see ``resample``), so that any arithmetic carries value and doubt at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Draws = NDArray[np.float64]  # shape (1 + replicates,)
LEVEL = 95.0  # per cent, of every interval


@dataclass(frozen=True, slots=True)
class Estimate:
    """``value`` in ``[low, high]`` (None: no interval can be given) from ``n`` prompts by ``method``."""

    value: float
    low: float | None
    high: float | None
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class Missing:
    """No number, and why."""

    reason: str


def divide(top: ArrayLike, bottom: ArrayLike) -> Draws:
    """``top / bottom``; NaN where there is nothing to divide by."""
    a, b = np.broadcast_arrays(np.asarray(top, float), np.asarray(bottom, float))
    return np.asarray(np.divide(a, b, out=np.full(a.shape, np.nan), where=b != 0))


def mean(draws: Sequence[Draws]) -> Draws:
    """Draw by draw."""
    return draws[0] if len(draws) == 1 else np.mean(draws, axis=0)


def from_draws(draws: Draws, n: int, method: str) -> Estimate | Missing:
    """The first draw as value, the central 95 % of the others as interval; one prompt has no interval.

    `Missing` if the value is not finite (no verify block, no time). Replicates that are not finite are left out.
    """
    value = float(draws[0])
    if not math.isfinite(value):
        return Missing(f"{method}: nothing to divide by")
    replicates = draws[1:][np.isfinite(draws[1:])]
    if n < 2 or not replicates.size:
        return Estimate(value, None, None, n, method)
    low, high = _ranks(len(replicates))
    ordered = np.partition(replicates, (low, high))
    return Estimate(value, float(ordered[low]), float(ordered[high]), n, method)


def _ranks(size: int) -> tuple[int, int]:
    """Places, from 0, of the order statistics that bound the central part: (size + 1) p, rounded outwards."""
    tail = (1 - LEVEL / 100) / 2
    return max(math.floor((size + 1) * tail) - 1, 0), min(math.ceil((size + 1) * (1 - tail)), size) - 1

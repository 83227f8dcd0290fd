"""Models of acceptance, and the way back: from a survival curve or a speedup to the chance of a draft.

Knows survival curves (``survival[k]``: the first k + 1 drafts are all accepted; a second axis holds bootstrap draws)
and closed forms; not runs. Two models:

- *independent*: every draft is accepted with probability alpha, so the curve is alpha^k;
- *Markov*: the first draft with ``first``, each later one with ``again`` given that the one before it was accepted, so
  the curve is first * again^(k-1) and a block commits 1 + first (1 - again^g) / (1 - again) tokens. What a draft would
  have met after a rejection never happens in a block, so a first-order chain has no more parameters than these two.

Both are fitted by maximum likelihood: accepted drafts / drafts that were reached. A block reaches slot k + 1 when it
accepted slot k.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from harness.stats.estimate import LEVEL, divide

Curve = NDArray[np.float64]  # (g,) or (g, draws)
ASSUMES_INDEPENDENT = "every draft is accepted independently, with one probability"
WILSON = "Wilson, drafts independent"
HALVINGS = 60  # of a bracket of width 1: beyond the last digit of a double


def fitted_alpha(survival: Curve) -> NDArray[np.float64]:
    """The independent model's chance of a draft: accepted / reached. NaN for a curve without slots."""
    return divide(survival.sum(axis=0), reached(survival))


def fitted_markov(survival: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``first`` and ``again`` of the Markov model; ``again`` is NaN where no block accepted its first draft."""
    return np.asarray(survival[0]), divide(survival[1:].sum(axis=0), survival[:-1].sum(axis=0))


def reached(survival: Curve) -> NDArray[np.float64]:
    """Drafts a block that are looked at on average: all up to the first rejection, that one included."""
    return np.asarray(1 + survival[:-1].sum(axis=0))


def markov_survival(first: float, again: float, drafted: int) -> list[float]:
    """The Markov model's curve."""
    return [first * again**k for k in range(drafted)]


def markov_tokens(first: float, again: float, drafted: int) -> float:
    """The Markov model's tokens a block, in closed form."""
    return 1 + first * (drafted if again == 1 else (1 - again**drafted) / (1 - again))


def wilson(successes: float, trials: float) -> tuple[float, float]:
    """The 95 % score interval of a proportion (Wilson 1927). ValueError without trials."""
    if trials <= 0:
        raise ValueError("no trials")
    z = float(norm.ppf(0.5 + LEVEL / 200))
    share, spread = successes / trials, z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / trials + spread / trials / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def alpha_of(value: float, rising: Callable[[float], float]) -> float | None:
    """Where ``rising`` (of a chance between 0 and 1) reaches ``value``; None where it never does."""
    low, high = 0.0, 1.0
    if not rising(low) <= value <= rising(high):
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < value else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, kw_only=True)
class Miss:
    """What a model makes of a curve: its tokens a block, and its largest error at one slot (model - measured)."""

    tokens: float
    slot: int  # from 1
    error: float


def miss(model: Sequence[float], measured: Curve) -> Miss:
    """A model's curve against the measured one."""
    errors = np.asarray(model) - np.asarray(measured)
    worst = int(np.abs(errors).argmax())
    return Miss(tokens=1 + float(np.sum(model)), slot=worst + 1, error=float(errors[worst]))

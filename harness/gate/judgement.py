"""One comparison of a candidate with a baseline: worse, fine, or not yet known.

An *effect* is a relative change (log ratio, candidate over baseline; negative is worse) with a standard error and
degrees of freedom. Two one-sided limits at level alpha decide:

  lower limit > -margin            ok            a drop as large as the margin is excluded
  else upper limit < 0             regression    a drop is there, and may be as large as the margin
  else                             inconclusive  measure more

so an untouched candidate is called a regression with odds of at most alpha, and a real but smaller drop than the margin
is passed with a note (the history's change points watch those add up). Looking again after each further repeat spends
alpha in equal parts over the planned looks (Bonferroni), so the odds hold for the whole sequence.
"""

from dataclasses import dataclass
from typing import Literal

from scipy import stats

Verdict = Literal["ok", "regression", "inconclusive", "invalid"]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A relative change. ``se`` 0 means that both sides are known exactly (tau at T=0 on identical tokens)."""

    value: float  # log(candidate / baseline)
    se: float
    df: float  # degrees of freedom behind ``se``; inf if it is known

    def limits(self, alpha: float) -> tuple[float, float]:
        """One-sided lower and upper limits, each at level ``alpha``."""
        if self.se == 0:
            return self.value, self.value
        reach = float(stats.t.isf(alpha, self.df)) * self.se
        return self.value - reach, self.value + reach


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict on one metric of one arm (or one cell), with the numbers that it rests on."""

    target: str
    arm: str
    metric: str  # tau | throughput
    scope: str  # "pooled", or a cell's setting
    verdict: Verdict
    effect: float  # relative change, 0.01 = +1 %
    low: float
    high: float
    margin: float
    alpha: float
    n: int  # prompts (tau) or allocations (throughput) of the candidate
    note: str = ""


def judge(effect: Effect, margin: float, alpha: float) -> tuple[Verdict, float, float]:
    """Verdict and the two limits (log ratios) of ``effect``.

    ``margin`` > 0 is the smallest drop that matters (log ratio); ``alpha`` the odds of calling no change a regression.
    """
    if not 0 < alpha < 0.5 or margin <= 0:
        raise ValueError(f"alpha {alpha} must be in (0, 0.5) and margin {margin} positive")
    low, high = effect.limits(alpha)
    if low > -margin:
        return "ok", low, high
    return ("regression" if high < 0 else "inconclusive"), low, high


def spent(alpha: float, comparisons: int, looks: int) -> float:
    """The level of one comparison at one look, so that all of them together raise a false alarm at most ``alpha``."""
    return alpha / (comparisons * looks)

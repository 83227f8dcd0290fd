"""One sweep, every width: what a run at its full width says about verifying fewer slots.

Knows survival curves; times come from the caller. At temperature 0 the text does not depend on the width, and neither
does whether a given draft from a given anchor is right; so a wide block holds what a block of every narrower width
would have accepted from the same anchor. A narrow run has more anchors than these. Two readings of its tau:

- *fixed places* (`fixed_places`): whether a draft is right depends on its place in the text, wherever the block began.
  A stretch of d + 1 tokens then takes ceil((d + 1) / w) narrow blocks; a block that was accepted whole goes on, and
  takes its share. Exact in that world where w divides the run's width.
- *cut* (`truncated`): 1 + a_1 + ... + a_(w-1), the wide histogram cut at w - 1. Exact where it depends on the slot
  alone, whatever the place.

Fixed places are what is used, because their error has a sign: where a draft from a nearer anchor is never worse, they
are a floor at widths that divide the run's, and the wide run's tau is the ceiling (docs/theory.md, with the proof and
with both readings against runs of the mini drafters at every width).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.stats.estimate import Estimate, Missing, divide, from_draws
from sglang_specbench.arms import ARMS

Draws = NDArray[np.float64]
ASSUMES = (
    "temperature 0: the target's text does not depend on the width",
    "whether a draft is right depends on its place in the text ('cut': on its slot); where it depends on both, tau "
    "is a floor if a draft from a nearer anchor is never worse",
    "the draft of a narrow block is the start of the wide one: see 'draft'",
)
# speculative algorithm -> whether slot i is the same draft whatever the width, and why
SAME_DRAFT = {
    "DFLASH": (False, "the block's slots attend to each other both ways: draft it whole, verify fewer"),
    "DSPARK": (False, "the block's slots attend to each other both ways: draft it whole, verify fewer"),
    "EAGLE3": (True, "drafted token by token: a slot knows only those before it"),
    "STANDALONE": (True, "drafted token by token: a slot knows only those before it"),
    "NGRAM": (True, "copied from a table: a shorter copy is the start of a longer one"),
}


def draft_note(arm: str) -> str:
    """Whether a narrower server's draft is the start of the wide one's, and why."""
    same, why = SAME_DRAFT[ARMS[arm].algorithm]
    return f"{'the same at every width' if same else 'another at another width'}: {why}"


def truncated(survival: Draws, width: int) -> Draws:
    """Tau of verifying ``width`` positions, anchor included, with fresh anchors; ``survival`` as (g, draws)."""
    return np.asarray(1 + survival[: width - 1].sum(axis=0))


def fixed_places(survival: Draws, width: int) -> Draws:
    """Tau of verifying ``width`` positions where rejections sit at places of the text."""
    ones = np.ones_like(survival[:1])
    reached = np.concatenate([ones, survival, 0 * ones])
    share = reached[:-1] - reached[1:]  # of blocks that accept d = 0..g
    whole = len(share) / width  # a stretch that the wide block did not end
    narrow = np.array([*(math.ceil((d + 1) / width) for d in range(len(share) - 1)), whole])
    return divide(1 + survival.sum(axis=0), np.tensordot(narrow, share, axes=1))


@dataclass(frozen=True, kw_only=True)
class Width:
    """One width: tokens a block, speedup over AR, and how often among the draws it is the best."""

    width: int
    tau: Estimate | Missing
    tau_cut: float
    speedup: Estimate | Missing
    best_share: float  # of bootstrap draws


def every_width(survival: Draws, prompts: int, cost: Callable[[int], float]) -> list[Width]:
    """Widths 2 to g + 1; ``cost(width)`` is a block's time in AR passes (draft and verification)."""
    sizes = range(2, len(survival) + 2)
    taus = [fixed_places(survival, width) for width in sizes]
    gains = [tau / cost(width) for tau, width in zip(taus, sizes, strict=True)]
    replicates = np.stack(gains)
    drawn = replicates[:, 1:][
        :, np.isfinite(replicates[:, 1:]).all(axis=0)
    ]  # a draw of prompts without a block has no tau
    replicates = drawn if prompts > 1 and drawn.size else replicates[:, :1]
    best = np.bincount(replicates.argmax(axis=0), minlength=len(gains)) / replicates.shape[1]
    return [
        Width(
            width=width,
            tau=from_draws(tau, prompts, "rejections at fixed places of the text"),
            tau_cut=float(truncated(survival, width)[0]),
            speedup=from_draws(gain, prompts, "tau / modelled time of a block"),
            best_share=float(share),
        )
        for width, tau, gain, share in zip(sizes, taus, gains, best, strict=True)
    ]


def best_width(found: list[Width]) -> tuple[Width, int, int]:
    """The best width by value, and the narrowest and widest that hold the middle 95 % of the draws."""
    shares = np.cumsum([w.best_share for w in found])
    low, high = int(np.searchsorted(shares, 0.025)), int(np.searchsorted(shares, 0.975))
    best = max(found, key=lambda w: w.speedup.value if isinstance(w.speedup, Estimate) else -math.inf)
    return best, found[low].width, found[min(high, len(found) - 1)].width

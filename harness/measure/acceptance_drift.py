"""Does acceptance change while a cell runs: a drafter that collapses in mid-cell leaves an average that means nothing.

A permutation test, at any concurrency. Prompts stand in the order in which they were begun; each has its surplus, the
accepted drafts less what the cell's mean rate gives its verify blocks. If time plays no part, any order of prompts (of
one category: sets are often sorted by it) is as likely as any other. The largest standardised partial sum of surpluses
is compared with that of `ORDERS` random orders, so a cell without a drift is called one with odds of at most `ODDS`,
whatever the distribution of answers; and only a change by at least `CHANGE` is spoken of, because a set that grows
harder towards its end does change, a little. Fewer than `FEWEST` prompts have too few orders to tell.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.schema.request import Row

ORDERS = 1999
ODDS = 0.001  # of a false alarm, a cell: about one in the paper's 1,200
CHANGE = 0.2  # of tau
FEWEST = 8  # 8! orders


def cautions(rows: Sequence[Row]) -> list[str]:
    """A caution with tau before and after the change, or none."""
    counts, categories = _by_prompt(rows)
    if len(counts) < FEWEST or not counts[:, 1].all():
        return []
    split, odds = changed(counts, categories)
    before, after = (1 + part.sum(axis=0)[0] / part.sum(axis=0)[1] for part in (counts[:split], counts[split:]))
    if odds > ODDS or abs(after - before) < CHANGE * before:
        return []
    return [
        f"tau went from {before:.2f} to {after:.2f} after {split} of {len(counts)} prompts "
        f"(odds of chance at most {ODDS:g}): does the drafter still run? measure it again"
    ]


def changed(counts: NDArray[np.float64], categories: NDArray[np.str_]) -> tuple[int, float]:
    """The likeliest place of a change (prompts before it), and the odds of one as large by chance.

    ``counts`` is (prompts, 2): accepted drafts and verify blocks, in order of time.
    """
    surplus = _surplus(counts, categories)
    sums = _partial(surplus[None])[0]
    rng = np.random.default_rng(0)
    drawn = np.tile(surplus, (ORDERS, 1))
    for category in np.unique(categories):
        places = np.flatnonzero(categories == category)
        drawn[:, places] = rng.permuted(drawn[:, places], axis=1)
    chance = _partial(drawn).max(axis=1)
    return int(sums.argmax()) + 1, float((1 + (chance >= sums.max()).sum()) / (1 + ORDERS))


def _surplus(counts: NDArray[np.float64], categories: NDArray[np.str_]) -> NDArray[np.float64]:
    """Accepted drafts less the mean rate of the prompt's category."""
    surplus = np.empty(len(counts))
    for category in np.unique(categories):
        own = categories == category
        correct, blocks = counts[own].T
        surplus[own] = correct - blocks * correct.sum() / blocks.sum()
    return surplus


def _partial(surplus: NDArray[np.float64]) -> NDArray[np.float64]:
    """|sum of the first k| over its standard deviation under exchange, for k = 1 .. P - 1; (orders, P - 1)."""
    size = surplus.shape[1]
    k = np.arange(1, size)
    return np.asarray(np.abs(surplus.cumsum(axis=1)[:, :-1]) / np.sqrt(k * (size - k) / size))


def _by_prompt(rows: Sequence[Row]) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """(P, 2) accepted drafts and verify blocks, and (P,) categories, of prompts with counts, in order of time."""
    sums: dict[int, list[float]] = {}
    named: dict[int, str] = {}
    for row in sorted(rows, key=lambda r: (r.index, r.turn)):
        if row.verify_ct and row.correct_drafts is not None:
            held = sums.setdefault(row.index, [0.0, 0.0])
            held[0] += row.correct_drafts
            held[1] += row.verify_ct
            named[row.index] = row.category
    return np.array(list(sums.values())).reshape(-1, 2), np.array(list(named.values()), dtype=np.str_)

"""How much to verify: the budget of verified slots over a batch that gives the most tokens a second.

Knows survival probabilities and the cost of a step; not tokens. ``survival_BD[r, s]`` is the chance that row r accepts
its slots 0..s, known before slot s is drafted. So a schedule made from it never looks at a drafted token: it is
*non-anticipating*, and the output keeps the target's distribution (drafters/reference/scheduled.py). ``cost(m)`` is the
time of a step that verifies m slots beyond the B anchors.

- Within a step of m slots the likeliest m are best, and they are prefixes of their rows, because survival never rises
  along a row; so trying every m is exact (`best_step`).
- Over a run of unlike steps the most tokens a second is not the sum of the best steps: a step worth less than the run's
  rate should be short. The optimum takes in each step the m with the largest tokens - rate * time, and the rate is the
  one at which those sum to nothing (Dinkelbach 1967, `best_policy`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Cost = Callable[[int], float]
ROUNDS = 100  # Dinkelbach's rates rise, and settle within a handful of rounds
SEED = 20608530
ASSUMES = (
    "survival is known before a slot is drafted (non-anticipating), and right",
    "the drafts are made in full whatever is verified; the cost of a step depends on its verified slots alone",
)


@dataclass(frozen=True, kw_only=True)
class VerifyPlan:
    """Slots verified beyond the anchors, tokens committed and time: of a step, or on average over steps."""

    slots: float
    tokens: float
    seconds: float

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds


def tokens_by_budget(survival_BD: Array) -> Array:
    """Expected tokens of a step with the likeliest m = 0..B D slots verified: [B D + 1]; every row gets its bonus.

    ValueError if survival rises along a row.
    """
    if (np.diff(survival_BD, axis=1) > 1e-12).any():
        raise ValueError("survival rises along a row")
    gained = np.sort(survival_BD, axis=None)[::-1].cumsum()
    return np.concatenate([[len(survival_BD)], len(survival_BD) + gained])


def admitted(survival_BD: Array, budget: int) -> NDArray[np.int64]:
    """Slots to verify in each row [B]: the likeliest ``budget``, ties to the earlier slot, then the earlier row."""
    order = np.argsort(-survival_BD.T.reshape(-1), kind="stable")[:budget]
    return np.bincount(order % len(survival_BD), minlength=len(survival_BD))


def best_step(survival_BD: Array, cost: Cost) -> VerifyPlan:
    """The budget with the most tokens a second in one step; the smaller one of equals."""
    tokens = tokens_by_budget(survival_BD)
    times = np.array([cost(m) for m in range(len(tokens))])
    return _taken(tokens, times, int((tokens / times).argmax()))


def full_step(survival_BD: Array, cost: Cost, width: int | None = None) -> VerifyPlan:
    """Every row verifies its first ``width`` slots; default: all."""
    taken = survival_BD[:, :width]
    return VerifyPlan(slots=taken.size, tokens=len(taken) + float(taken.sum()), seconds=cost(taken.size))


def best_policy(steps: Sequence[Array], cost: Cost) -> VerifyPlan:
    """The schedule with the most tokens a second over ``steps``, each as likely; its average step."""
    plan = average_step([full_step(step, cost) for step in steps])
    tokens = [tokens_by_budget(step) for step in steps]
    times = np.array([cost(m) for m in range(max(map(len, tokens)))])
    for _ in range(ROUNDS):
        better = average_step([_at_price(gained, times[: len(gained)], plan.rate) for gained in tokens])
        if better.rate <= plan.rate * (1 + 1e-12):
            return plan if plan.rate >= better.rate else better
        plan = better
    raise AssertionError("Dinkelbach's rates did not settle")


def drawn_steps(by_prompt: Array, weights: Array, batch: int, count: int = 200) -> list[Array]:
    """``count`` batches of ``batch`` rows, prompts drawn by their share of blocks; seeded."""
    rng = np.random.default_rng(SEED)
    return [by_prompt[rng.choice(len(weights), size=batch, p=weights)] for _ in range(count)]


def _at_price(tokens: Array, times: Array, rate: float) -> VerifyPlan:
    """The budget with the largest tokens - rate * time."""
    return _taken(tokens, times, int((tokens - rate * times).argmax()))


def _taken(tokens: Array, times: Array, slots: int) -> VerifyPlan:
    return VerifyPlan(slots=slots, tokens=float(tokens[slots]), seconds=float(times[slots]))


def average_step(plans: Sequence[VerifyPlan]) -> VerifyPlan:
    """The mean of each part; its rate is that of the whole."""
    slots, tokens, seconds = np.mean([(p.slots, p.tokens, p.seconds) for p in plans], axis=0)
    return VerifyPlan(slots=float(slots), tokens=float(tokens), seconds=float(seconds))

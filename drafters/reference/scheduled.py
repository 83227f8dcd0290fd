"""Confidence-scheduled verification: spend a budget of verified slots where they are most likely to survive.

Knows estimated acceptance probabilities and a budget; not tokens. A schedule is exact only if it is *non-anticipating*:
whether slot s is verified may depend on the slots before it and on other rows, never on the token drafted at s or
later (else the verified drafts are a biased selection). `admit` is: a slot's rank depends on no later slot of its
row, because survival never rises along a row. tests/drafters/reference/test_scheduled.py keeps the anticipating
counterexample.

Source: DSpark (arXiv 2607.05147), its confidence head and its warning about peeking.

Shapes: B rows, D drafted slots. confidence_BD[:, s] estimates the acceptance of slot s given that the slots before
were accepted, computed before slot s is drawn.
"""

import torch
from torch import Tensor


def survival(confidence_BD: Tensor) -> Tensor:
    """Probability that slots 0..s are all accepted: [B, D], non-increasing along a row."""
    return confidence_BD.cumprod(1)


def admit(confidence_BD: Tensor, budget: int) -> Tensor:
    """Slots to verify in each row [B] when ``budget`` slots may be verified in all: the likeliest to survive first.

    Ties go to the earlier slot, then to the earlier row, so that what is admitted in a row is always a prefix.
    """
    rows = len(confidence_BD)
    by_slot_then_row = survival(confidence_BD).T.reshape(-1)
    taken = by_slot_then_row.argsort(descending=True, stable=True)[:budget]
    return torch.bincount(taken % rows, minlength=rows)

"""Scheduled verification: which slots are admitted, and that admission does not leak the drafted tokens.

Laws are computed by enumerating drafts and a grid of coins (see test_verify), never by sampling.
"""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drafters.reference.scheduled import admit, survival
from drafters.reference.verify import speculative_round

pytestmark = pytest.mark.torch
P, Q = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.2, 0.6, 0.2]).double()
confidences = st.lists(st.sampled_from([0.1, 0.5, 0.9, 1.0]), min_size=12, max_size=12)


def test_the_likeliest_slots_are_admitted_first():
    confidence = torch.tensor([[0.9, 0.9, 0.9], [0.5, 0.9, 0.9], [0.95, 0.1, 1.0]])
    assert [admit(confidence, budget).tolist() for budget in (0, 1, 3, 4, 6, 9)] == [
        [0, 0, 0],
        [0, 0, 1],
        [2, 0, 1],
        [3, 0, 1],
        [3, 2, 1],
        [3, 3, 3],
    ]


@given(confidences, st.integers(0, 12))
def test_the_budget_is_spent_in_prefixes_of_the_likeliest(values, budget):
    confidence = torch.tensor(values).view(3, 4)
    limit = admit(confidence, budget)
    assert limit.sum() == budget
    admitted = torch.arange(4) < limit[:, None]
    alive = survival(confidence)
    if 0 < budget < 12:
        assert alive[admitted].min() >= alive[~admitted].max()


@given(confidences, st.integers(0, 12), st.integers(0, 2), st.integers(0, 3), st.floats(0.01, 1))
def test_a_later_slot_never_decides_an_earlier_one(values, budget, row, slot, other):
    """Non-anticipating: changing slot s's confidence leaves the admission of slots before s as it was."""
    confidence = torch.tensor(values).view(3, 4)
    changed = confidence.clone()
    changed[row, slot] = other
    before, after = admit(confidence, budget)[row], admit(changed, budget)[row]
    assert min(before, slot) == min(after, slot)


def row_law(draft, limit, p, q):
    """Law [V, V] of a row's first two tokens given its two drafts and its limit; p, q: [V] then [V, V]."""
    axis = (torch.arange(60).double() + 0.5) / 60
    coins = torch.cartesian_prod(axis, axis, axis)
    n, (d1, d2) = len(coins), draft
    ps = torch.stack([p[0], p[1][d1], torch.ones_like(p[0])]).expand(n, 3, -1)
    qs = torch.stack([q[0], q[1][d1]]).expand(n, 2, -1)
    accepted, token = speculative_round(
        torch.tensor([draft]).expand(n, 2), ps, qs, coins[:, :2], coins[:, 2], torch.full((n,), limit)
    )
    first = torch.where(accepted >= 1, d1, token)
    law = torch.zeros_like(p[1])
    law[d1] += torch.bincount(token[accepted == 1], minlength=len(law)).double() / n
    law[d1, d2] += (accepted == 2).double().mean()
    stopped = torch.bincount(first[accepted == 0], minlength=len(law)).double() / n
    return law + stopped[:, None] * p[1]  # the second token of a stopped row comes from the target


def test_two_rows_that_share_a_budget_stay_independent_and_exact():
    """Slot 2's confidence depends on the token drafted at slot 1, as a Markov head's does; both rows compete."""
    p = (torch.tensor([0.75, 0.25]).double(), torch.tensor([[0.5, 0.5], [0.25, 0.75]]).double())
    q = (torch.tensor([0.5, 0.5]).double(), torch.tensor([[0.75, 0.25], [0.5, 0.5]]).double())
    second = (0.9, 0.3)  # confidence of slot 2 by the token at slot 1
    law = torch.zeros(2, 2, 2, 2).double()
    pairs = list(itertools.product(range(2), repeat=2))
    rows = {(d, limit): row_law(d, limit, p, q) for d in pairs for limit in range(3)}
    for a, b in itertools.product(pairs, repeat=2):
        limit = admit(torch.tensor([[0.8, second[a[0]]], [0.7, second[b[0]]]]), budget=3).tolist()
        weight = torch.stack([q[0][d[0]] * q[1][d] for d in (a, b)]).prod()
        law += weight * torch.einsum("ab,cd->abcd", rows[a, limit[0]], rows[b, limit[1]])
    exact = p[0][:, None] * p[1]
    torch.testing.assert_close(law, torch.einsum("ab,cd->abcd", exact, exact), atol=1e-12, rtol=0)


def test_verifying_unless_b_was_drafted_is_not_exact():
    """The anticipating counterexample: p = (.5, .3, .2), q = (.2, .6, .2), a drafted b is not verified."""
    axis = (torch.arange(60).double() + 0.5) / 60
    coins = torch.cartesian_prod(axis, axis)
    law = torch.zeros(3).double()
    for d in range(3):
        n = len(coins)
        limit = torch.full((n,), 0 if d == 1 else 1)
        draft, p, q = torch.tensor([[d]]).expand(n, 1), torch.stack([P, P]).expand(n, 2, 3), Q.expand(n, 1, 3)
        accepted, token = speculative_round(draft, p, q, coins[:, :1], coins[:, 1], limit)
        law += Q[d] * torch.bincount(torch.where(accepted == 1, d, token), minlength=3).double() / n
    torch.testing.assert_close(law, torch.tensor([0.5, 0.18, 0.32]).double())

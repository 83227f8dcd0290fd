"""The rules of verification, proved by enumeration.

Probabilities are multiples of 1/N with N <= 4, so every threshold of an accept (a/b, b <= 4) and of a redraw (a/b,
b <= 4) is a multiple of 1/12: running the real code once on the midpoints of a grid of 12 coins an axis gives
the law exactly, not by sampling.
"""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drafters.model.draw import draw
from drafters.reference.verify import (
    acceptance_rate,
    greedy_match,
    one_hot,
    processed_target,
    residual,
    speculative_round,
    total_variation,
)

pytestmark = pytest.mark.torch
V, N, GRID = 3, 4, 12
P3, Q3 = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.2, 0.6, 0.2]).double()


def compositions(parts=V, total=N):
    return [c for c in itertools.product(range(total + 1), repeat=parts) if sum(c) == total]


laws = st.sampled_from([torch.tensor(c).double() / N for c in compositions()])


def output_law(p1, p2, p3, q1, q2, rule, slots=2):
    """Joint law of the first three tokens: a round of two slots, then the target itself.

    p1 [V]; p2 [V, V] by first token; p3 [V, V, V] by the first two; q1, q2 likewise. All coins are enumerated.
    """
    axis = (torch.arange(GRID).double() + 0.5) / GRID
    coins = torch.cartesian_prod(axis, axis, axis)
    law = torch.zeros(V, V, V).double()
    for d1, d2 in itertools.product(range(V), repeat=2):
        weight = (q1[d1] * q2[d1, d2]).item()
        if weight == 0:
            continue
        n = len(coins)
        draft = torch.tensor([[d1, d2]]).expand(n, 2)
        p = torch.stack([p1, p2[d1], p3[d1, d2]]).expand(n, 3, V)
        q = torch.stack([q1, q2[d1]]).expand(n, 2, V)
        accepted, token = rule(draft, p, q, coins[:, :2], coins[:, 2])
        for a in range(slots + 1):
            hits = torch.bincount(token[accepted == a], minlength=V).double() / n * weight
            if a == 0:
                law += hits[:, None, None] * p2[:, :, None] * p3
            elif a == 1:
                law[d1] += hits[:, None] * p3[d1]
            else:
                law[d1, d2] += hits
    return law


def target_law(p1, p2, p3):
    return p1[:, None, None] * p2[:, :, None] * p3


@settings(max_examples=25, deadline=None)
@given(st.lists(laws, min_size=1 + V + V * V, max_size=1 + V + V * V), st.lists(laws, min_size=1 + V, max_size=1 + V))
def test_a_sampled_round_emits_the_targets_law(ps, qs):
    p1, p2, p3 = ps[0], torch.stack(ps[1 : 1 + V]), torch.stack(ps[1 + V :]).view(V, V, V)
    q1, q2 = qs[0], torch.stack(qs[1:])
    law = output_law(p1, p2, p3, q1, q2, speculative_round)
    torch.testing.assert_close(law, target_law(p1, p2, p3), atol=1e-12, rtol=0)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(laws, min_size=1 + V + V * V, max_size=1 + V + V * V),
    st.lists(st.integers(0, V - 1), min_size=1 + V, max_size=1 + V),
)
def test_a_point_mass_round_emits_the_targets_law(ps, drafts):
    p1, p2, p3 = ps[0], torch.stack(ps[1 : 1 + V]), torch.stack(ps[1 + V :]).view(V, V, V)
    q = one_hot(torch.tensor(drafts), V)
    law = output_law(p1, p2, p3, q[0], q[1:], lambda d, p, _, u, w: speculative_round(d, p, None, u, w))
    torch.testing.assert_close(law, target_law(p1, p2, p3), atol=1e-12, rtol=0)


def test_the_three_token_example_accepts_seven_tenths():
    assert acceptance_rate(P3, Q3).item() == pytest.approx(0.7)
    assert (P3 * Q3).sum().item() == pytest.approx(0.32)  # the naive rule: draw from p, accept if it equals the draft
    torch.testing.assert_close(residual(P3, Q3), one_hot(torch.tensor(0), 3))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=6, max_size=6))
def test_acceptance_is_one_minus_total_variation(weights):
    """For random real p, q: sum min(p, q) = 1 - TV, and accepted + redrawn mass is p."""
    p, q = torch.tensor(weights).double().view(2, 3)
    p, q = p / p.sum(), q / q.sum()
    overlap = torch.minimum(p, q)
    assert acceptance_rate(p, q).item() == pytest.approx(overlap.sum().item())
    torch.testing.assert_close(overlap + total_variation(p, q) * residual(p, q), p)


def test_the_naive_acceptance_is_never_the_better():
    for p, q in itertools.product(compositions(), repeat=2):
        p, q = torch.tensor(p).double() / N, torch.tensor(q).double() / N
        assert (p * q).sum() <= acceptance_rate(p, q) + 1e-12


def test_greedy_match_stops_at_the_first_difference():
    draft = torch.tensor([[1, 2, 3], [1, 9, 3], [9, 2, 3]])
    target = torch.tensor([[1, 2, 3, 4]]).expand(3, 4)
    accepted, token = greedy_match(draft, target)
    assert accepted.tolist() == [3, 1, 0]
    assert token.tolist() == [4, 2, 1]


def test_temperature_zero_is_the_greedy_rule():
    logits = torch.randn(8, 5, 7, generator=torch.Generator().manual_seed(0))
    draft = logits[:, :4].argmax(-1)
    draft[::2, 2] = (draft[::2, 2] + 1) % 7
    coins = torch.rand(8, 5, generator=torch.Generator().manual_seed(1)).double()
    sampled = speculative_round(draft, processed_target(logits, 0), None, coins[:, :4], coins[:, 4])
    for seen, wanted in zip(sampled, greedy_match(draft, logits.argmax(-1)), strict=True):
        assert seen.tolist() == wanted.tolist()


def test_a_draft_outside_the_truncated_support_is_always_rejected():
    p = processed_target(torch.tensor([3.0, 2.0, 1.0, 0.0]), 1.0, top_k=2)
    draft = torch.tensor([[3]])
    accepted, token = speculative_round(
        draft, p.expand(1, 2, 4), None, torch.zeros(1, 1).double(), torch.tensor([0.999]).double()
    )
    assert (accepted.item(), token.item()) == (0, 1)


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"),
    [(-1, 1.0, 4), (2, 1.0, 2), (-1, 0.5, 1), (-1, 0.65, 2), (3, 0.9, 3), (2, 0.6, 1), (9, 1.0, 4)],
)
def test_truncation_keeps_the_likeliest_and_renormalises(top_k, top_p, kept):
    base = torch.tensor([0.1, 0.2, 0.6, 0.1]).double()  # (3, .9): two of the equal tails, the lower index, stays
    p = processed_target(base.log(), 1.0, top_k, top_p)
    assert int((p > 0).sum()) == kept
    assert p.sum().item() == pytest.approx(1)
    keep = p > 0
    torch.testing.assert_close(p[keep], base[keep] / base[keep].sum())


def test_draw_never_returns_a_token_of_zero_probability():
    p = torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0]).double()
    coins = torch.tensor([0.0, 0.49999, 0.5, 1 - 2**-53], dtype=torch.float64)
    assert draw(p.expand(4, 5), coins).tolist() == [1, 1, 3, 3]


def test_a_limited_round_draws_the_next_token_from_p():
    """Row 0 verifies no slot: its token is p's whatever was drafted. Row 1 verifies one: then the second is p's."""
    p = torch.tensor([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [1.0, 0, 0]]).double().expand(GRID, 3, V)
    axis = (torch.arange(GRID).double() + 0.5) / GRID
    draft, coins = torch.tensor([[1, 2]]).expand(GRID, 2), torch.zeros(GRID, 2).double()
    for limit in (0, 1):
        accepted, token = speculative_round(draft, p, None, coins, axis, torch.full((GRID,), limit))
        assert accepted.unique().tolist() == [limit]
        torch.testing.assert_close(torch.bincount(token, minlength=V).double() / GRID, p[0, limit])

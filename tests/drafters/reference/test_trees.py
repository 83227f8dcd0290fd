"""Token trees: masks by hand, the walks against the chain rules, recursive rejection by exact enumeration.

Probabilities are multiples of 1/3, so the first child's threshold is a multiple of 1/6 and the second's (a ratio of a
residual in units 1/m to q in units 1/3 or 1/m', m, m' <= 3) of 1/36: midpoints of such grids integrate exactly.
"""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drafters.reference.trees import ancestor_mask, depths, greedy_walk, recursive_rejection, sampled_walk, without
from drafters.reference.verify import processed_target, speculative_round

pytestmark = pytest.mark.torch
PARENTS = (-1, 0, 0, 1, 1, 2, 4)  # anchor; two children; three grandchildren; one great-grandchild
TOKENS = (9, 5, 6, 7, 8, 7, 1)
laws = st.sampled_from([torch.tensor(c).double() / 3 for c in itertools.product(range(4), repeat=3) if sum(c) == 3])


def test_a_node_sees_itself_and_its_ancestors():
    seen = [set(row.nonzero()[:, 0].tolist()) for row in ancestor_mask(PARENTS)]
    assert seen == [{0}, {0, 1}, {0, 2}, {0, 1, 3}, {0, 1, 4}, {0, 2, 5}, {0, 1, 4, 6}]


def test_positions_are_depths():
    assert depths(PARENTS).tolist() == [0, 1, 1, 2, 2, 2, 3]


def test_a_chain_has_the_causal_mask():
    chain = range(-1, 7)
    assert ancestor_mask(chain).equal(torch.ones(8, 8).tril().bool())


@pytest.mark.parametrize(
    ("target", "path", "token"),
    [
        ((5, 8, 0, 0, 1, 0, 3), [1, 4, 6], 3),
        ((6, 8, 7, 0, 1, 4, 3), [2, 5], 4),
        ((5, 7, 0, 2, 1, 0, 3), [1, 3], 2),
        ((0, 8, 0, 0, 1, 0, 3), [], 0),
    ],
)
def test_the_greedy_walk_follows_the_targets_argmax(target, path, token):
    assert greedy_walk(PARENTS, TOKENS, target) == (path, token)


def emitted_law(p, q, replacement):
    """Law of the token emitted after a node with two children, over all draws of the children and coins."""
    law = torch.zeros(3).double()
    grids = [(torch.arange(n).double() + 0.5).div(n).tolist() for n in (6, 36)]
    for first, second in itertools.product(range(3), repeat=2):
        q2 = q if replacement else without(q, first)
        weight = float(q[first] * q2[second])
        if weight == 0:
            continue
        for coins in itertools.product(*grids):
            index, rest = recursive_rejection((first, second), p, q, coins, replacement)
            emitted = rest if index is None else torch.eye(3).double()[(first, second)[index]]
            law += weight / (6 * 36) * emitted
    if not replacement:  # q is a point mass: there is no second child to draw
        for first in range(3):
            if q[first] == 1:
                for coin in grids[0]:
                    index, rest = recursive_rejection((first,), p, q, (coin,), replacement)
                    law += (rest if index is None else torch.eye(3).double()[first]) / 6
    return law


@pytest.mark.parametrize("replacement", [True, False])
@settings(max_examples=12, deadline=None)
@given(p=laws, q=laws)
def test_recursive_rejection_emits_the_targets_law(replacement, p, q):
    torch.testing.assert_close(emitted_law(p, q, replacement), p, atol=1e-12, rtol=0)


def test_mistaking_how_children_were_drawn_is_not_exact():
    """Children drawn without replacement but verified as if with: so the test above can fail."""
    p, q = torch.tensor([0, 0.4, 0.6, 0]).double(), torch.full((4,), 0.25).double()
    law = torch.zeros(4).double()
    grid = [(i + 0.5) / 20 for i in range(20)]
    for first, second in itertools.permutations(range(4), 2):
        for coins in itertools.product(grid, grid):
            index, rest = recursive_rejection((first, second), p, q, coins, replacement=True)
            law += (rest if index is None else torch.eye(4).double()[(first, second)[index]]) / 12 / 400
    assert (law - p).abs().max() > 0.02


def test_on_a_chain_the_sampled_walk_is_the_speculative_round():
    generator = torch.Generator().manual_seed(3)
    for _ in range(50):
        p, q = processed_target(torch.randn(2, 5, 6, generator=generator), 1.0)
        draft = torch.multinomial(q[:4], 1, generator=generator)[:, 0]
        coins = torch.rand(5, generator=generator).double()
        accepted, token = speculative_round(draft[None], p[None], q[None, :4], coins[None, :4], coins[4:])
        tokens, flips = [0, *draft.tolist()], [0.0, *coins[:4].tolist()]
        walk = sampled_walk(range(-1, 4), tokens, p, q, flips, coins[4].item(), replacement=False)
        assert walk == (list(range(1, accepted.item() + 1)), token.item())

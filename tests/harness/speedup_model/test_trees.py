"""Trees: the greedy choice against every tree, survival by simulation, recursive rejection against the torch rule."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.speedup_model.trees import best_tree, prefix_mask, some_child_accepted, tree_of, walked_blocks

MARGINALS = [[0.5, 0.3], [0.6, 0.1], [0.9, 0.05]]


def sorted_law(size):
    shares = st.lists(st.floats(0.01, 1), min_size=size, max_size=size)
    return shares.map(lambda xs: sorted((x / sum(xs) for x in xs), reverse=True))


def law(size):
    counts = st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)
    return counts.map(lambda xs: np.array(xs) / sum(xs))


def every_tree(depth, ranks, nodes):
    """All sets of ``nodes`` paths that hold their parents."""
    paths = [p for d in range(1, depth + 1) for p in itertools.product(range(ranks), repeat=d)]
    for chosen in itertools.combinations(paths, nodes):
        if all(len(p) == 1 or p[:-1] in chosen for p in chosen):
            yield chosen


@settings(deadline=None, max_examples=25)
@given(st.lists(sorted_law(2), min_size=3, max_size=3), st.integers(0, 5))
def test_greedy_is_the_best_of_every_tree(marginals, nodes):
    best = max(tree_of(paths, marginals).tokens for paths in every_tree(3, 2, nodes))
    assert best_tree(marginals, nodes).tokens == pytest.approx(best)


@settings(deadline=None)
@given(st.lists(sorted_law(3), min_size=1, max_size=4), st.integers(0, 12))
def test_more_nodes_never_cost_tokens(marginals, nodes):
    assert best_tree(marginals, nodes + 1).tokens >= best_tree(marginals, nodes).tokens


def test_one_candidate_a_depth_is_the_chain():
    tree = best_tree([[0.8]] * 4, 4)
    assert tree.parents == (-1, 0, 1, 2, 3)
    assert tree.tokens == pytest.approx(sum(0.8**k for k in range(5)))
    assert len(best_tree([[0.8]] * 4, 9).paths) == 5  # there are no more


def test_expected_tokens_against_a_simulation():
    """100,000 walks; five standard errors, odds below 1 in 10^6."""
    tree, rng, walks = best_tree(MARGINALS, 5), np.random.default_rng(2), 100_000
    right = np.stack([rng.choice(3, size=walks, p=[*m, 1 - sum(m)]) for m in MARGINALS], axis=1)  # rank; 2: neither
    lengths = np.array([max(len(p) for p in tree.paths if p == tuple(row[: len(p)])) for row in right])
    assert abs(1 + lengths.mean() - tree.tokens) < 5 * lengths.std() / np.sqrt(walks)


def test_a_walk_by_hand():
    """Anchor 0 takes ranks 0, 1; anchor 3 takes none, for rank 2 is in no tree; anchor 4 takes rank 1 and no child."""
    tree = tree_of([(0,), (1,), (0, 1)], MARGINALS)
    ranks = [[0, 1, 0], [0, 0, 0], [0, 0, 0], [2, 0, 0], [1, 0, 0]]
    assert walked_blocks(tree, ranks) == [3, 1, 2]


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(0, 2**32))
def test_a_walked_tree_commits_what_was_promised_where_marginals_are_all_there_is(nodes, seed):
    """2,000 anchors with ranks drawn afresh: five standard errors, odds below 1 in 10^5 over the 30 examples."""
    rng, tree = np.random.default_rng(seed), best_tree(MARGINALS, nodes)
    ranks = np.stack([rng.choice(3, size=2_000, p=[*m, 1 - sum(m)]) for m in MARGINALS], axis=1).tolist()
    blocks = np.array(walked_blocks(tree, ranks))
    assert abs(blocks.mean() - tree.tokens) < 5 * blocks.std() / np.sqrt(len(blocks))


def test_a_node_without_its_parent_is_refused():
    with pytest.raises(ValueError, match="no parent"):
        tree_of([(0, 1)], MARGINALS)


def test_the_mask_by_hand():
    assert prefix_mask((-1, 0, 0, 1)).astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]]


@pytest.mark.torch
@settings(deadline=None)
@given(st.lists(st.integers(0, 100), max_size=12))
def test_the_mask_is_the_torch_rules(choices):
    from drafters.reference.trees import ancestor_mask

    parents = (-1, *(choice % (i + 1) for i, choice in enumerate(choices)))
    assert prefix_mask(parents).tolist() == ancestor_mask(parents).tolist()


@settings(deadline=None)
@given(law(4), law(4))
def test_one_child_is_accepted_with_one_minus_the_total_variation(p, q):
    for replacement in (True, False):
        assert some_child_accepted(p, q, 1, replacement) == pytest.approx(np.minimum(p, q).sum())


@settings(deadline=None)
@given(law(4), law(4), st.integers(1, 3), st.booleans())
def test_more_children_are_never_accepted_less(p, q, children, replacement):
    fewer, more = (some_child_accepted(p, q, c, replacement) for c in (children, children + 1))
    assert more >= fewer - 1e-12
    assert 0 <= more <= 1 + 1e-12


def test_without_replacement_all_tokens_are_tried_in_the_end():
    """Uniform q over 4: four different children, so whatever the target says is among them."""
    p, q = np.array([0, 0.4, 0.6, 0]), np.full(4, 0.25)
    assert some_child_accepted(p, q, 4, replacement=False) == pytest.approx(1)
    assert some_child_accepted(p, q, 4, replacement=True) < 1


@pytest.mark.torch
@settings(deadline=None, max_examples=15)
@given(law(3), law(3), st.booleans())
def test_recursive_rejection_accepts_as_often_as_the_torch_rule(p, q, replacement):
    """Over all pairs of children; a coin between 0 and 1 falls below its threshold with just that chance."""
    import torch

    from drafters.reference.trees import recursive_rejection, without

    p_V, q_V = torch.tensor(p), torch.tensor(q)
    accepted = 0.0
    for first in range(3):
        second_law = q_V if replacement else without(q_V, first)
        if q[first] == 0:
            continue
        if second_law.sum() == 0:
            accepted += q[first] * _share(lambda c, f=first: recursive_rejection((f,), p_V, q_V, (c,), replacement))
            continue
        for second in range(3):
            weight = float(q[first] * second_law[second])
            if weight == 0:
                continue
            one = _share(lambda c, f=first: recursive_rejection((f,), p_V, q_V, (c,), replacement))
            both = _share(
                lambda c, f=first, s=second: recursive_rejection((f, s), p_V, q_V, (1 - 1e-9, c), replacement)
            )
            accepted += weight * (one + (1 - one) * both if one < 1 - 1e-8 else 1.0)
    assert some_child_accepted(p, q, 2, replacement) == pytest.approx(accepted, abs=1e-6)


def _share(outcome):
    """Chance over a uniform coin that ``outcome`` accepts, by bisection: it accepts below a threshold."""
    low, high = 0.0, 1.0
    if outcome(1 - 1e-12)[0] is not None:
        return 1.0
    if outcome(0.0)[0] is None:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if outcome(middle)[0] is not None else (low, middle)
    return low

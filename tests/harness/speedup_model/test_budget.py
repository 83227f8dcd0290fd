"""How much to verify: against every way to share out slots, the torch rule, a simulation, and by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.speedup_model.budget import admitted, best_policy, best_step, drawn_steps, full_step, tokens_by_budget

chance = st.floats(0, 1)
batches = st.integers(1, 3).flatmap(
    lambda drafted: st.lists(st.lists(chance, min_size=drafted, max_size=drafted), min_size=1, max_size=3)
)
costs = st.lists(st.floats(0.01, 2), min_size=10, max_size=10).map(lambda steps: np.cumsum([1.0, *steps]))


def survival_of(conditionals):
    return np.array(conditionals).cumprod(axis=1)


def every_plan(survival):
    """(slots, tokens) of every way to verify a prefix of each row."""
    rows, drafted = survival.shape
    for lengths in itertools.product(range(drafted + 1), repeat=rows):
        yield sum(lengths), rows + sum(survival[r, :length].sum() for r, length in enumerate(lengths))


@settings(deadline=None)
@given(batches, costs)
def test_the_best_step_is_the_best_of_all(conditionals, times):
    survival = survival_of(conditionals)
    found = best_step(survival, lambda m: times[m])
    assert found.rate == pytest.approx(max(tokens / times[slots] for slots, tokens in every_plan(survival)))


@settings(deadline=None, max_examples=40)
@given(batches, batches, costs)
def test_the_best_policy_is_the_best_of_all_pairs(one, other, times):
    """Over two unlike steps, against every pair of plans; and never worse than the best steps apart."""
    steps = [survival_of(one), survival_of(other)]
    found = best_policy(steps, lambda m: times[m])
    pairs = itertools.product(every_plan(steps[0]), every_plan(steps[1]))
    best = max((a[1] + b[1]) / (times[a[0]] + times[b[0]]) for a, b in pairs)
    assert found.rate == pytest.approx(best)
    apart = [best_step(step, lambda m: times[m]) for step in steps]
    assert found.rate >= sum(p.tokens for p in apart) / sum(p.seconds for p in apart) * (1 - 1e-12)


def test_the_best_steps_are_not_the_best_policy():
    """By hand: a step that will yield little should be short, so that a good one comes sooner."""
    dull, good = np.array([[0.2]]), np.array([[0.9]])
    cost = [1.0, 1.19].__getitem__
    assert best_step(dull, cost).slots == 1  # 1.2 / 1.19 > 1
    assert best_policy([dull, good], cost).rate == pytest.approx((1 + 1.9) / (1 + 1.19))


@settings(deadline=None)
@given(batches, st.integers(0, 9))
def test_what_is_admitted_are_prefixes_worth_the_budget(conditionals, budget):
    survival = survival_of(conditionals)
    budget = min(budget, survival.size)
    lengths = admitted(survival, budget)
    assert lengths.sum() == budget
    worth = len(survival) + sum(survival[r, :length].sum() for r, length in enumerate(lengths))
    assert worth == pytest.approx(tokens_by_budget(survival)[budget])


@pytest.mark.torch
@settings(deadline=None)
@given(batches, st.integers(0, 9))
def test_the_torch_rule_admits_the_same(conditionals, budget):
    import torch

    from drafters.reference.scheduled import admit

    theirs = admit(torch.tensor(conditionals, dtype=torch.float64), budget)
    assert theirs.tolist() == admitted(survival_of(conditionals), budget).tolist()


def test_a_schedule_that_does_not_peek_commits_what_it_promises():
    """200,000 blocks of two rows: five standard errors, odds below 1 in 10^6."""
    rng = np.random.default_rng(3)
    conditionals = np.array([[0.9, 0.8, 0.7], [0.5, 0.9, 0.2]])
    lengths = admitted(survival_of(conditionals), 4)
    accepted = (rng.random((200_000, 2, 3)) < conditionals).cumprod(axis=2)
    seen = np.arange(3) < lengths[:, None]
    tokens = 2 + (accepted * seen).sum(axis=(1, 2))
    promised = tokens_by_budget(survival_of(conditionals))[4]
    assert abs(tokens.mean() - promised) < 5 * tokens.std() / np.sqrt(len(tokens))


@settings(deadline=None)
@given(batches)
def test_free_verification_verifies_all_and_dear_verification_nothing(conditionals):
    survival = survival_of(conditionals)
    assert best_step(survival, lambda m: 1.0).tokens == pytest.approx(full_step(survival, lambda m: 1.0).tokens)
    assert best_step(survival, lambda m: 1.0 + 100 * m).slots == 0


@settings(deadline=None)
@given(batches)
def test_tokens_rise_by_ever_less(conditionals):
    gained = np.diff(tokens_by_budget(survival_of(conditionals)))
    assert (gained >= -1e-12).all()
    assert (np.diff(gained) <= 1e-12).all()


def test_survival_that_rises_is_refused():
    with pytest.raises(ValueError, match="rises"):
        tokens_by_budget(np.array([[0.5, 0.6]]))


def test_batches_are_drawn_by_share_of_blocks_and_repeat():
    curves, weights = np.array([[0.9], [0.1]]), np.array([0.25, 0.75])
    steps = drawn_steps(curves, weights, 50)
    assert np.array_equal(steps, drawn_steps(curves, weights, 50))
    share = np.mean([step == 0.9 for step in steps])
    assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 10_000)

"""Anchors are valid, uniform over the valid ones, and a pure function of (seed, step, sample)."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from drafters.training.anchors import sample_anchors, valid_anchors  # noqa: E402

LOSS = torch.tensor([0, 0, 1, 1, 1, 0, 1, 0, 1, 1], dtype=torch.bool)


def test_an_anchor_and_its_successor_are_supervised():
    assert valid_anchors(LOSS).tolist() == [2, 3, 8]


def test_few_valid_anchors_are_all_taken_in_order():
    assert sample_anchors(LOSS, 512, seed=1, step=0, sample=0).tolist() == [2, 3, 8]


def test_the_draw_is_the_same_again_and_differs_between_steps_and_samples():
    loss = torch.ones(200, dtype=torch.bool)
    draws = {
        (step, sample): tuple(sample_anchors(loss, 5, seed=7, step=step, sample=sample).tolist())
        for step in range(20)
        for sample in range(20)
    }
    again = {key: tuple(sample_anchors(loss, 5, seed=7, step=key[0], sample=key[1]).tolist()) for key in draws}
    assert draws == again
    assert len(set(draws.values())) > 390  # C(199, 5) draws: two equal ones have odds of about 1 in 30,000


def test_the_draw_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    sample_anchors(LOSS, 2, seed=1, step=0, sample=0)
    assert torch.equal(before, torch.get_rng_state())


def test_every_valid_anchor_is_equally_likely():
    """Chi-square over 10 positions, 3,000 single draws; the fixed seed makes it repeatable (threshold: 1 in 10^6)."""
    loss = torch.ones(11, dtype=torch.bool)
    counts = torch.zeros(10)
    for step in range(3000):
        counts[sample_anchors(loss, 1, seed=3, step=step, sample=0)] += 1
    chi_square = ((counts - 300) ** 2 / 300).sum()
    assert chi_square < 45.1

"""The order of samples: a partition of each epoch, the same at every resume, and split over ranks without overlap."""

import pytest

from drafters.training.sample_order import Order

LENGTHS = [(7 * i) % 50 + 1 for i in range(103)]


def test_an_epoch_sees_each_sample_at_most_once_and_drops_only_the_last_partial_batch():
    order = Order(LENGTHS, batch=10, seed=1)
    seen = [i for step in range(order.steps_per_epoch) for i in order.indices(step)]
    assert order.steps_per_epoch == 10
    assert len(seen) == len(set(seen)) == 100


def test_a_step_is_the_same_whatever_was_asked_before():
    straight, jumping = Order(LENGTHS, 10, 1), Order(LENGTHS, 10, 1)
    for step in range(17):
        straight.indices(step)
    assert straight.indices(17) == jumping.indices(17)


def test_epochs_and_seeds_differ():
    order = Order(LENGTHS, 10, 1)
    first, second = ([order.indices(s) for s in range(e * 10, e * 10 + 10)] for e in (0, 1))
    assert first != second
    assert first != [Order(LENGTHS, 10, 2).indices(s) for s in range(10)]


@pytest.mark.parametrize("world", [1, 2, 5])
def test_ranks_share_a_step_without_overlap(world):
    order = Order(LENGTHS, 10, 1)
    shares = [order.indices(3, rank, world) for rank in range(world)]
    assert sorted(i for share in shares for i in share) == sorted(order.indices(3))
    assert {len(share) for share in shares} == {10 // world}


def test_a_step_goes_from_short_to_long_and_mixes_lengths():
    order = Order(list(range(1000)), batch=10, seed=1)
    steps = [order.indices(s) for s in range(100)]
    assert all(step == sorted(step) for step in steps)
    spread = sum(step[-1] - step[0] for step in steps) / 100
    assert 750 < spread < 900  # ten uniform draws spread over 9/11 of the range: 818

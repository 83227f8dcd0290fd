"""Walks and the exact path on lattices small enough to enumerate."""

import itertools

import pytest
import torch
from torch import Tensor

from drafters.model.lattice import best_path, greedy_walk, sampled_walk

pytestmark = pytest.mark.torch


def lattice(rows: int, slots: int, candidates: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    start_BK = torch.randn(rows, candidates, generator=generator)
    return start_BK, torch.randn(rows, slots - 1, candidates, candidates, generator=generator)


def paths(slots: int, candidates: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(candidates), repeat=slots))


def score(start_K: Tensor, pair_SPC: Tensor, path: tuple[int, ...]) -> float:
    steps = zip(pair_SPC, path, path[1:], strict=False)
    return float(start_K[path[0]] + sum(pair_PC[before, after] for pair_PC, before, after in steps))


@pytest.mark.parametrize(("slots", "candidates"), [(1, 4), (2, 3), (4, 3), (6, 2)])
def test_best_path_equals_brute_force(slots: int, candidates: int) -> None:
    start_BK, pair_BSPC = lattice(20, slots, candidates, seed=slots)
    chosen = best_path(start_BK, pair_BSPC).tolist()
    walked = greedy_walk(start_BK, pair_BSPC).tolist()
    for row, path in enumerate(chosen):
        every = {p: score(start_BK[row], pair_BSPC[row], p) for p in paths(slots, candidates)}
        assert tuple(path) == max(every, key=every.__getitem__)
        assert every[tuple(path)] >= every[tuple(walked[row])]
    assert slots < 4 or chosen != walked  # the two rules are not the same rule


def test_walk_is_exact_when_predecessors_do_not_matter() -> None:
    start_BK, pair_BSPC = lattice(50, 15, 8, seed=1)
    pair_BSPC = pair_BSPC[:, :, :1].expand_as(pair_BSPC)
    assert torch.equal(greedy_walk(start_BK, pair_BSPC), best_path(start_BK, pair_BSPC))


def test_ties_go_to_the_first_candidate() -> None:
    start_BK, pair_BSPC = torch.zeros(2, 4), torch.zeros(2, 5, 4, 4)
    assert not greedy_walk(start_BK, pair_BSPC).any()
    assert not best_path(start_BK, pair_BSPC).any()


def test_sampled_walk_draws_its_q() -> None:
    """Coins spread evenly over the unit cube hit each path as often as q says: 40^3 coins, error below 3 / 40."""
    start_BK, pair_BSPC = lattice(1, 3, 2, seed=3)
    coin = (torch.arange(40) + 0.5) / 40
    coins_BD = torch.cartesian_prod(coin, coin, coin)
    rows = len(coins_BD)
    path_BD, q_BDK = sampled_walk(start_BK.expand(rows, -1), pair_BSPC.expand(rows, -1, -1, -1), 0.7, coins_BD)
    for path in paths(3, 2):
        p = 1.0
        for slot, rank in enumerate(path):
            row_K = start_BK[0] if slot == 0 else pair_BSPC[0, slot - 1, path[slot - 1]]
            p *= float((row_K / 0.7).softmax(0)[rank])
        hit_B = (path_BD == torch.tensor(path)).all(1)
        assert float(hit_B.double().mean()) == pytest.approx(p, abs=3 / 40)
        assert float(q_BDK[hit_B].gather(-1, path_BD[hit_B][..., None]).prod(1)[0]) == pytest.approx(p, rel=1e-5)


def test_temperature_near_zero_is_greedy() -> None:
    start_BK, pair_BSPC = lattice(30, 15, 8, seed=5)
    coins_BD = torch.rand(30, 15, generator=torch.Generator().manual_seed(1))
    path_BD, _ = sampled_walk(start_BK, pair_BSPC, 0.0, coins_BD)
    assert torch.equal(path_BD, greedy_walk(start_BK, pair_BSPC))

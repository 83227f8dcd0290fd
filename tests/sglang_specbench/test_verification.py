"""The two acceptance rules against the law that they must emit, by enumerating drafts and coins.

Coins run over the midpoints of a grid that every threshold of the test's probabilities falls on, so the frequencies are
exact: no false alarms, tolerance is float32 rounding only.
"""

import functools
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
from sglang_specbench.serving.patches import verification  # noqa: E402

V, W, GRID, FINAL = 4, 3, 8, 840  # vocabulary, window, grids of the acceptance coins and of the last coin
P = {  # target law after the prefix: (), then after each first token
    (): (8, 4, 4, 0),
    (0,): (2, 6, 4, 4),
    (1,): (4, 4, 4, 4),
    (2,): (0, 8, 8, 0),
    (3,): (16, 0, 0, 0),
}
Q = {(): (4, 8, 2, 2), (0,): (8, 4, 2, 2), (1,): (2, 2, 4, 8), (2,): (4, 4, 4, 4), (3,): (8, 8, 0, 0)}


def law(table: dict[tuple[int, ...], tuple[int, ...]], prefix: tuple[int, ...]) -> list[float]:
    return [n / 16 for n in table[prefix]]


def buffers(rows: int) -> dict[str, Any]:
    return {
        "predicts": torch.full((rows * W,), -7, dtype=torch.int32),
        "accept_index": torch.full((rows, W), -7, dtype=torch.int32),
        "accept_token_num": torch.full((rows,), -7, dtype=torch.int32),
        "retrive_index": torch.arange(rows * W).view(rows, W),
        "retrive_next_token": None,
        "retrive_next_sibling": None,
    }


def emitted(rule: Callable[..., None], drafts: tuple[int, int], q_rows: Any, coins: Any, final: Any) -> Any:
    """Length accepted and bonus of each coin row, read as SGLang reads the in-place outputs."""
    rows = coins.shape[0]
    out = buffers(rows)
    target = torch.tensor([law(P, ()), law(P, drafts[:1]), law(P, (drafts[1],))]).expand(rows, W, V)
    rule(
        **out,
        candidates=torch.tensor([[9, *drafts]]).expand(rows, W),
        uniform_samples=coins,
        uniform_samples_for_final_sampling=final,
        target_probs=target,
        draft_probs=q_rows.expand(rows, *q_rows.shape),
        threshold_single=1.0,
        threshold_acc=1.0,
        deterministic=True,
    )
    length = out["accept_token_num"].long()
    bonus = out["predicts"][out["accept_index"][torch.arange(rows), length].long()]
    for step in range(W - 1):  # accepted drafts are what they were drafted as
        accepted = length > step
        assert (out["predicts"].view(rows, W)[accepted, step] == drafts[step]).all()
    return length.tolist(), bonus.tolist()


def coin_grid(width: int) -> tuple[Any, Any]:
    axis, last = (torch.arange(GRID) + 0.5) / GRID, (torch.arange(FINAL) + 0.5) / FINAL
    first, second, final = torch.meshgrid(axis, axis, last, indexing="ij")
    coins = torch.stack([first.flatten(), second.flatten(), *[first.flatten() * 0] * (width - 2)], dim=1)
    return coins, final.flatten()


def frequencies(runs: list[tuple[float, tuple[int, int], Any]]) -> tuple[Any, Any]:
    """Law of the first token emitted; law of the second given the first was an accepted draft."""
    first: dict[int, float] = defaultdict(float)
    second: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for weight, drafts, (lengths, bonuses) in runs:
        share = weight / len(lengths)
        for length, bonus in zip(lengths, bonuses, strict=True):
            first[drafts[0] if length else bonus] += share
            if length:
                second[drafts[0]][drafts[1] if length > 1 else bonus] += share
    return first, second


def check_laws(runs: list[tuple[float, tuple[int, int], Any]]) -> None:
    first, second = frequencies(runs)
    assert [first[x] for x in range(V)] == pytest.approx(law(P, ()), abs=1e-6)
    for x, found in second.items():
        mass = sum(found.values())
        assert [found[y] / mass for y in range(V)] == pytest.approx(law(P, (x,)), abs=1e-6)


@functools.cache
def honest_runs() -> list[tuple[float, tuple[int, int], Any]]:
    return chain_runs(verification.chain_rule)


def chain_runs(rule: Callable[..., None]) -> list[tuple[float, tuple[int, int], Any]]:
    coins, final = coin_grid(2)
    runs = []
    for x in range(V):
        for y in range(V):
            weight = law(Q, ())[x] * law(Q, (x,))[y]
            if weight:
                q_rows = torch.tensor([law(Q, ()), law(Q, (x,))])
                runs.append((weight, (x, y), emitted(rule, (x, y), q_rows, coins, final)))
    return runs


def test_sampled_proposals_emit_the_target() -> None:
    check_laws(honest_runs())


@pytest.mark.parametrize("drafts", [(0, 1), (1, 0), (2, 1), (3, 0)])
def test_argmax_proposals_emit_the_target(drafts: tuple[int, int]) -> None:
    coins, final = coin_grid(3)
    found = emitted(verification.point_mass_rule, drafts, torch.zeros(W, V), coins, final)
    check_laws([(1.0, drafts, found)])


def test_enumeration_sees_a_residual_that_ignores_q(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail: resampling a rejected draft from p instead of relu(p - q)."""
    monkeypatch.setattr(
        verification, "_draw", lambda weights, coin, draw=verification._draw: draw(weights + 0.25, coin)
    )
    with pytest.raises(AssertionError):
        check_laws(chain_runs(verification.chain_rule))


def test_acceptance_rate_is_the_overlap_of_p_and_q() -> None:
    """P(first draft accepted) = sum min(p, q) (Leviathan et al. 2023)."""
    accepted = sum(w * sum(n > 0 for n in lengths) / len(lengths) for w, _, (lengths, _) in honest_runs())
    overlap = sum(min(Fraction(p, 16), Fraction(q, 16)) for p, q in zip(P[()], Q[()], strict=True))
    assert accepted == pytest.approx(float(overlap), abs=1e-6)


def test_a_draft_without_mass_is_never_accepted() -> None:
    coins = torch.zeros(1, 3)
    lengths, bonuses = emitted(verification.point_mass_rule, (3, 0), torch.zeros(W, V), coins, torch.tensor([0.999999]))
    assert (lengths, bonuses) == ([0], [2])  # the last token that has mass, not the last id


def test_an_improper_q_is_rejected_and_replaced_by_p() -> None:
    q_rows = torch.tensor([[float("nan")] * V, law(Q, (0,))])
    lengths, bonuses = emitted(verification.chain_rule, (0, 0), q_rows, torch.zeros(1, 2), torch.tensor([0.6]))
    assert (lengths, bonuses) == ([0], [1])  # cumulative p: .5 .75 1 1


def test_inexact_settings_are_refused() -> None:
    rows = buffers(1) | {"candidates": None, "uniform_samples": None, "uniform_samples_for_final_sampling": None}
    rows |= {"target_probs": None, "draft_probs": None, "deterministic": True}
    with pytest.raises(ValueError, match="thresholds"):
        verification.point_mass_rule(**rows, threshold_single=0.9, threshold_acc=1.0)
    with pytest.raises(ValueError, match="block verification"):
        verification.chain_rule(**rows, threshold_single=1.0, threshold_acc=1.0, block_verification=True)

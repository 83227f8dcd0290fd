"""The target distribution: processing against the reference rules, and growth over the likely prefixes only."""

import asyncio

import numpy as np
import pytest

from harness.audit.rounding import ROUNDING
from harness.audit.target_distribution import Raw, SamplingRule, complete, grow, near, processed, target_distribution

FP32 = ROUNDING["float32"]
SETTINGS = [(1.0, -1, 1.0), (0.7, -1, 1.0), (1.5, 4, 1.0), (1.0, -1, 0.8), (0.8, 5, 0.6)]


@pytest.mark.torch
@pytest.mark.parametrize(("temperature", "top_k", "top_p"), SETTINGS)
def test_processing_is_the_reference_rules(temperature, top_k, top_p):
    import torch

    from drafters.reference.verify import processed_target

    logprobs = np.sort(np.log(np.random.default_rng(0).dirichlet(np.ones(12))))[::-1]
    ours = processed(logprobs, SamplingRule(temperature=temperature, top_k=top_k, top_p=top_p))
    theirs = processed_target(torch.tensor(logprobs.copy()), temperature, top_k, top_p)
    np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-12)


async def coin(prefixes):
    """Token 0 has probability 0.9 after anything, token 1 the rest."""
    return [Raw(np.array([0, 1]), np.log([0.9, 0.1])) for _ in prefixes]


def grown(*args, **kwargs):
    return asyncio.run(grow(coin, *args, **kwargs))


def test_only_likely_prefixes_are_asked_for():
    raw = grown([SamplingRule()], depth=3, floor=0.09)
    assert set(raw) == {(), (0,), (1,), (0, 0), (0, 1), (1, 0)}


def test_joint_probabilities_are_products():
    known = target_distribution(grown([SamplingRule()], depth=3, floor=0.09), SamplingRule(), FP32)
    assert known.sequences(3, floor=0.08) == pytest.approx(
        {(0, 0, 0): 0.729, (0, 0, 1): 0.081, (0, 1, 0): 0.081, (1, 0, 0): 0.081}
    )
    assert known.sequences(2, floor=0.05) == pytest.approx({(0, 0): 0.81, (0, 1): 0.09, (1, 0): 0.09})


def test_a_cut_leaves_tokens_out_and_says_which_may_pass():
    known = target_distribution(grown([SamplingRule(top_k=1)], depth=1, floor=0.01), SamplingRule(top_k=1), FP32)
    assert known.conditionals[()] == {0: 1.0}
    assert known.allowed[()] == {0}
    assert target_distribution(grown([SamplingRule()], depth=1, floor=0.01), SamplingRule(), FP32).allowed == {}


def test_rounding_widens_a_cut_by_what_it_can_move():
    """Half a nat apart: neither precision lets it pass; 0.2 nats or a border within 0.02 of mass: bf16 does."""
    bf16 = ROUNDING["bfloat16"]
    far, close = np.log([0.5, 0.3, 0.2]), np.log([0.4, 0.33, 0.27])
    assert near(far, SamplingRule(top_k=1), bf16).tolist() == [True, False, False]
    assert near(close, SamplingRule(top_k=1), bf16).tolist() == [True, True, False]
    assert near(close, SamplingRule(top_k=1), FP32).tolist() == [True, False, False]
    assert near(far, SamplingRule(top_p=0.48), bf16).tolist() == [True, True, False]
    assert near(far, SamplingRule(top_p=0.48), FP32).tolist() == [True, False, False]


def test_a_head_without_its_tail():
    """4 of 8 tokens, 0.96 of the mass: top-p cuts by the whole mass, and what the head cannot tell is unknown."""
    p = np.array([0.5, 0.25, 0.15, 0.06])
    head = Raw(np.arange(4), np.log(p))
    assert processed(head.logprobs, SamplingRule(top_p=0.8)) == pytest.approx(np.array([0.5, 0.25, 0.15, 0]) / 0.9)
    assert complete(head, SamplingRule(top_p=0.8))
    assert complete(head, SamplingRule(temperature=0.5, top_k=4))
    for setting in (SamplingRule(top_p=0.97), SamplingRule(temperature=0.5), SamplingRule(top_k=5)):
        assert not complete(head, setting)
    assert target_distribution({(): head}, SamplingRule(top_p=0.97), FP32).conditionals == {}
    assert 7 not in target_distribution({(): head}, SamplingRule(top_p=0.8), FP32).allowed[()]


def test_labels():
    assert [SamplingRule(temperature=t, top_k=k, top_p=p).label for t, k, p in SETTINGS] == [
        "T=1", "T=0.7", "T=1.5 top-k 4", "T=1 top-p 0.8", "T=0.8 top-k 5 top-p 0.6",
    ]  # fmt: skip

"""Mixtures: touched experts against a simulation, their limits, and where verification turns cheap."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.speedup_model import presets
from harness.speedup_model.experts import experts_added, experts_touched, tokens_to_touch
from harness.speedup_model.roofline import cheap_batches, free_batch, least_dear_batch, step

DEEPSEEK, QWEN30, H100 = presets.shape("deepseek-v3"), presets.shape("qwen3-30b-a3b"), presets.hardware("h100")
LLAMA = presets.shape("llama-3.1-8b")


def test_touched_experts_against_a_simulation():
    """20,000 draws of 8 of 64 for 10 tokens; odds below 1 in 10^6 of a miss by five standard errors."""
    rng = np.random.default_rng(5)
    picks = rng.random((20_000, 10, 64)).argpartition(8, axis=2)[:, :, :8]
    seen = np.zeros((20_000, 64), bool)
    for token in range(10):
        np.put_along_axis(seen, picks[:, token], True, axis=1)
    counts = seen.sum(axis=1)
    error = counts.std(ddof=1) / math.sqrt(len(counts))
    assert abs(counts.mean() - experts_touched(64, 8, 10)) < 5 * error


@settings(deadline=None)
@given(st.integers(1, 256), st.integers(1, 256), st.integers(0, 400))
def test_added_is_the_difference(experts, routed, tokens):
    routed = min(routed, experts)
    difference = experts_touched(experts, routed, tokens + 1) - experts_touched(experts, routed, tokens)
    assert experts_added(experts, routed, tokens) == pytest.approx(difference, abs=1e-9)


@settings(deadline=None)
@given(st.integers(1, 100))
def test_one_expert_and_all_experts(tokens):
    assert experts_touched(1, 1, tokens) == 1
    assert experts_touched(64, 64, tokens) == 64
    assert tokens_to_touch(64, 64, 0.9) == 1


@settings(deadline=None)
@given(st.integers(2, 256), st.floats(0.01, 0.99))
def test_tokens_to_touch_is_the_first_that_does(experts, share):
    tokens = tokens_to_touch(experts, 1, share)
    assert experts_touched(experts, 1, tokens) >= share * experts * (1 - 1e-12)
    assert experts_touched(experts, 1, tokens - 1) < share * experts


@pytest.mark.parametrize("shape", [DEEPSEEK, QWEN30])
def test_a_mixture_is_dear_at_batch_one_and_nearly_free_later(shape):
    """The first batch is found against a plain scan of every batch."""

    def ratio(batch):
        return step(shape, H100, batch, 4, 512).seconds / step(shape, H100, batch, 1, 512).seconds

    first, last = cheap_batches(shape, H100, 4, 512)
    assert first == next(batch for batch in range(1, 500) if ratio(batch) <= 1.1)
    assert ratio(last) <= 1.1 < ratio(last + 1)
    assert ratio(1) > 2.4
    assert ratio(first - 1) > 1.1
    cheapest, least = least_dear_batch(shape, H100, 4, 512)
    assert least == ratio(cheapest) == pytest.approx(min(ratio(batch) for batch in range(1, 2000)), abs=0.01)


def test_a_dense_model_is_cheap_from_the_start():
    first, last = cheap_batches(LLAMA, H100, 4, 512)
    assert first == 1
    assert last >= free_batch(LLAMA, H100, 4, 512)
    assert cheap_batches(LLAMA, H100, 4, 100_000) == (1, 2**20 - 1)

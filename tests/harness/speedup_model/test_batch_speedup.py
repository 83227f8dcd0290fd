"""S(B): by hand on sizes of one, its limits, monotonicity, several GPUs, memory."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.speedup_model import presets
from harness.speedup_model.batch_speedup import (
    DrafterShape,
    block,
    block_drafter,
    drafter,
    gain,
    gain_at_any_batch,
    gpus_for_weights,
    sequences_that_fit,
)
from harness.speedup_model.roofline import Hardware, critical_context, step
from harness.speedup_model.shape import Shape
from harness.speedup_model.speedup import expected_tokens, iid_survival
from sglang_specbench.errors import UserError

QWEN, H100 = presets.shape("qwen3-8b"), presets.hardware("h100")
TINY = Shape(source="by hand", layers=1, hidden=4, heads=1, kv_heads=1, head_dim=4, intermediate=8, vocabulary=8)
# by hand: attention 4 * 4 * 2 * 2 = 64, feed-forward 3 * 4 * 8 = 96, embeddings 2 * 8 * 4 = 64: 224 parameters
DEVICE = Hardware(source="by hand", flops={"bf16": 1000.0}, bandwidth=100.0, memory=10_000.0, link=10.0)
survivals = st.floats(0, 1).map(lambda alpha: iid_survival(alpha, 7))


def test_a_block_by_hand():
    """Weights 448 bytes / 100; cache 2 * 4 * 2 = 16 bytes a token; attention 4 * 4 operations a cached token."""
    drafting = DrafterShape(shape=replace(TINY, intermediate=0), parallel=False)  # 128 parameters
    found = block(TINY, drafting, DEVICE, batch=2, drafted=3, context=10, t0_s=0.5)
    assert found.ar.seconds == pytest.approx(4.48 + 2 * 10 * 16 / 100 + 0.5)
    assert found.verify.arithmetic_s == pytest.approx(2 * 4 * (2 * 224 + 16 * 10) / 1000)
    assert found.draft_s == pytest.approx(3 * (2.56 + 3.2 + 0.5))
    assert gain([0.5, 0.25, 0.125], found) == pytest.approx(
        1.875 * found.ar.seconds / (found.draft_s + max(4.48 + 3.2, found.verify.arithmetic_s) + 0.5)
    )


def test_two_gpus_by_hand():
    two = replace(DEVICE, gpus=2)
    one, half = (step(replace(TINY, heads=2, kv_heads=2), d, 2, 4, 10) for d in (DEVICE, two))
    assert half.weights_s == one.weights_s / 2
    assert half.kv_s == one.kv_s / 2
    assert half.arithmetic_s == one.arithmetic_s / 2
    assert half.link_s == pytest.approx(8 * 2 * 2 * (1 / 2) * 4 * 2 / 10)  # tokens, all-reduces, 2 (n - 1) / n, bytes
    assert step(TINY, two, 2, 4, 10).kv_s == step(TINY, DEVICE, 2, 4, 10).kv_s  # one key-value head: on both
    latent = presets.shape("deepseek-v3")
    assert latent.cache_share(8) == 1  # one latent vector: on every GPU
    assert QWEN.cache_share(8) == 1 / 8
    assert QWEN.cache_share(16) == 1 / 8


@settings(deadline=None)
@given(survivals, st.sampled_from([1, 2, 8]), st.sampled_from([128, 4096, 100_000]))
def test_a_huge_batch_comes_to_the_limit(survival, gpus, context):
    device = replace(H100, gpus=gpus)
    for drafting in (drafter("block", QWEN), drafter("qwen3-4b", QWEN)):
        found = block(QWEN, drafting, device, 10**9, len(survival), context, t0_s=0.01)
        limit = gain_at_any_batch(survival, QWEN, drafting, device, context)
        assert gain(survival, found) == pytest.approx(limit, rel=1e-4)


@settings(deadline=None)
@given(st.floats(0, 0.99), st.floats(0, 0.01), st.integers(1, 1024), st.integers(1, 15))
def test_more_acceptance_never_slows(alpha, more, batch, drafted):
    found = block(QWEN, drafter("block", QWEN), H100, batch, drafted, 512)
    assert gain(iid_survival(alpha + more, drafted), found) >= gain(iid_survival(alpha, drafted), found)


@settings(deadline=None)
@given(st.integers(1, 1024), st.integers(1, 15))
def test_limits_of_alpha(batch, drafted):
    found = block(QWEN, drafter("block", QWEN), H100, batch, drafted, 512)
    assert gain(iid_survival(0, drafted), found) == pytest.approx(1 / found.cost)
    assert gain(iid_survival(0, drafted), found) < 1  # nothing accepted: slower than not drafting
    assert gain(iid_survival(1, drafted), found) == pytest.approx((drafted + 1) / found.cost)


def test_above_both_critical_contexts_the_limit_is_tokens_over_cache_reads():
    """Every pass reads its cache only, so a block costs 1 + the drafter's share of the cache."""
    context, survival = 40_000, iid_survival(0.8, 7)
    drafting = drafter("block", QWEN)
    assert all(critical_context(s, H100, 8) < context for s in (QWEN, drafting.shape))
    assert gain_at_any_batch(survival, QWEN, drafting, H100, context) == pytest.approx(
        expected_tokens(survival) / (1 + 5 / 36)
    )


@settings(deadline=None)
@given(st.integers(1, 2000), st.integers(1, 8))
def test_a_fixed_cost_hides_every_other(batch, drafted):
    """T0 without end: a parallel block is two passes, a token by token one drafted + 1."""
    for name, passes in (("block", 2), ("qwen3-4b", drafted + 1)):
        found = block(QWEN, drafter(name, QWEN), H100, batch, drafted, 512, t0_s=1e9)
        assert found.cost == pytest.approx(passes)


def test_no_draft_is_plain_decoding():
    found = block(QWEN, drafter("block", QWEN), H100, 4, 0, 512, t0_s=0.001)
    assert found.cost == 1
    assert gain([], found) == 1


def test_memory_by_hand():
    assert sequences_that_fit(TINY, None, DEVICE, 10) == int((9000 - 448) / 160)
    drafting = DrafterShape(shape=TINY, parallel=False)
    assert sequences_that_fit(TINY, drafting, DEVICE, 10) == int((9000 - 2 * 448) / 320)
    borrowing = DrafterShape(shape=replace(TINY, borrowed=64), parallel=True)
    assert sequences_that_fit(TINY, borrowing, DEVICE, 10) == int((9000 - 448 - 320) / 320)
    assert sequences_that_fit(TINY, None, replace(DEVICE, memory=400.0), 10) == 0
    assert gpus_for_weights(TINY, replace(DEVICE, memory=100.0)) == 5


def test_the_drafter_of_a_mixture_is_dense_and_as_wide_as_what_a_token_uses():
    drafting = block_drafter(presets.shape("deepseek-v3"))
    assert drafting.experts == 0
    assert drafting.intermediate == 9 * 2048
    assert drafting.parameters < presets.shape("deepseek-v3").parameters / 100


def test_an_unknown_drafter_is_named():
    with pytest.raises(UserError, match=r"--drafter: no preset 'blok'"):
        drafter("blok", QWEN)


def test_precisions_stand_apart():
    """FP8 weights halve the read; FP8 products halve the arithmetic where the hardware has them, and nowhere else."""
    fp8, awq = presets.shape("qwen3-8b-fp8"), presets.shape("qwen3-8b-awq")
    plain, eight, four = (step(shape, H100, 8, 16, 0) for shape in (QWEN, fp8, awq))
    assert eight.weights_s == plain.weights_s / 2
    assert four.weights_s == plain.weights_s / 4
    assert eight.arithmetic_s == pytest.approx(plain.arithmetic_s * 989 / 1979)
    assert four.arithmetic_s == plain.arithmetic_s  # four-bit weights, bf16 products
    a100 = presets.hardware("a100")
    assert step(fp8, a100, 8, 16, 0).arithmetic_s == step(QWEN, a100, 8, 16, 0).arithmetic_s
    assert step(replace(QWEN, cache="fp8"), H100, 8, 16, 512).kv_s == step(QWEN, H100, 8, 16, 512).kv_s / 2

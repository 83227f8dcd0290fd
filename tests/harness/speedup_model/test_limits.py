"""What every answer of the model must obey, whatever the sizes: order, ends of the scale, mixtures that are none."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.speedup_model import presets
from harness.speedup_model.batch_speedup import (
    DrafterShape,
    block,
    drafter,
    gain,
    gain_at_any_batch,
    sequences_that_fit,
)
from harness.speedup_model.costs import from_rooflines
from harness.speedup_model.roofline import free_batch, step
from harness.speedup_model.speedup import (
    autoregressive_draft,
    best_length,
    expected_tokens,
    iid_survival,
    parallel_draft,
    speedup,
)

SHAPES = {name: presets.shape(name) for name in presets.tables("models.toml")}
DEVICES = {name: presets.hardware(name) for name in presets.tables("hardware.toml")}
shapes = st.sampled_from(list(SHAPES.values()))
dense = st.sampled_from([shape for shape in SHAPES.values() if not shape.experts])
devices = st.builds(
    lambda device, gpus: replace(device, gpus=gpus), st.sampled_from(list(DEVICES.values())), st.sampled_from([1, 2, 8])
)
batches, positions = st.integers(1, 4096), st.integers(1, 64)
contexts = st.integers(0, 200_000)


@settings(deadline=None)
@given(shapes, devices, batches, positions, contexts, st.integers(1, 1000))
def test_a_pass_over_more_never_takes_less(shape, device, batch, slots, context, more):
    alone = step(shape, device, batch, slots, context).seconds
    assert step(shape, device, batch + more, slots, context).seconds >= alone
    assert step(shape, device, batch, slots + more, context).seconds >= alone
    assert step(shape, device, batch, slots, context + more).seconds >= alone
    assert step(shape, device, batch, slots, context, 1e-3).seconds == pytest.approx(alone + 1e-3)


@settings(deadline=None)
@given(shapes, devices, batches, st.integers(1, 63), contexts, st.floats(0, 1))
def test_a_block_gains_no_more_than_its_tokens(shape, device, batch, drafted, context, alpha):
    """Verification reads at least what AR reads; so a block costs at least an AR pass, whatever drafts it."""
    survival = iid_survival(alpha, drafted)
    for drafting in (drafter("block", shape), DrafterShape(shape=SHAPES["qwen3-4b"], parallel=False)):
        found = block(shape, drafting, device, batch, drafted, context)
        assert 0 < gain(survival, found) <= expected_tokens(survival)


@settings(deadline=None)
@given(shapes, devices, contexts, st.integers(0, 15), st.floats(0, 1))
def test_a_huge_batch_comes_to_the_limit_for_every_preset(shape, device, context, drafted, alpha):
    """Mixtures and latent attention, too: at 10^12 sequences weights are nothing beside caches and arithmetic."""
    survival = iid_survival(alpha, drafted)
    found = block(shape, drafter("block", shape), device, 10**12, drafted, context)
    limit = gain_at_any_batch(survival, shape, drafter("block", shape), device, context)
    assert gain(survival, found) == pytest.approx(limit, rel=1e-3)


@settings(deadline=None, max_examples=30)
@given(dense, devices, st.integers(1, 32), st.integers(1, 32), contexts)
def test_more_positions_leave_the_free_regime_no_later(shape, device, slots, more, context):
    few, many = (free_batch(shape, device, n, context) for n in (slots, slots + more))
    assert few is None or (many is not None and many <= few)


@settings(deadline=None)
@given(shapes, devices, st.integers(1, 100_000), st.integers(1, 100_000))
def test_longer_contexts_fit_no_more_sequences(shape, device, context, more):
    drafting = drafter("block", shape)
    alone = sequences_that_fit(shape, None, device, context)
    with_drafter = sequences_that_fit(shape, drafting, device, context)
    assert sequences_that_fit(shape, drafting, device, context + more) <= with_drafter <= alone


@settings(deadline=None)
@given(st.integers(1, 256), st.integers(1, 16), st.integers(1, 5000))
def test_a_mixture_of_one_expert_or_of_all_is_dense(width, experts, tokens):
    """Apart from the router's own parameters, hidden x experts a layer."""
    plain = SHAPES["qwen3-4b"]
    for routed_of in (1, experts):
        mixture = replace(plain, intermediate=0, experts=routed_of, routed=routed_of, expert_intermediate=width)
        same = replace(plain, intermediate=routed_of * width)
        router = 2 * plain.layers * plain.hidden * routed_of
        assert mixture.bytes_read(tokens) == pytest.approx(same.bytes_read(tokens) + router)
        assert mixture.active == mixture.parameters == same.parameters + router / 2


@settings(deadline=None)
@given(st.floats(0, 1), st.floats(0.001, 2), st.integers(1, 64))
def test_alpha_at_its_ends(alpha, cost, drafted):
    """Nothing accepted: no draft pays. All accepted: a parallel draft is never long enough. Between: between."""
    draft = autoregressive_draft(cost)
    assert best_length(iid_survival(0, drafted), draft) == (0, 1.0)
    assert best_length(iid_survival(1, drafted), parallel_draft(0.5))[0] == drafted
    low, value, high = (speedup(iid_survival(a, drafted), draft) for a in (0, alpha, 1))
    assert low == pytest.approx(1 / (drafted * cost + 1))
    assert high == pytest.approx((drafted + 1) / (drafted * cost + 1))
    assert low <= value <= high * (1 + 1e-12)


@settings(deadline=None)
@given(shapes, devices, st.integers(1, 512), st.integers(1, 15), contexts)
def test_costs_of_a_full_block_agree_whichever_way_they_are_asked(shape, device, batch, drafted, context):
    costs = from_rooflines(shape, drafter("block", shape), device, drafted, context, 1e-4)
    whole = block(shape, drafter("block", shape), device, batch, drafted, context, 1e-4).cost
    assert costs.block(batch, drafted + 1) == pytest.approx(whole)
    assert costs.ragged(batch, batch * drafted) == pytest.approx(whole)
    assert costs.ragged(batch, 0) <= whole

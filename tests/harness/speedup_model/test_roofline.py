"""The roofline against worked numbers, published parameter counts and its own limits."""

import math

import pytest

from harness.speedup_model import presets
from harness.speedup_model.experts import experts_touched
from harness.speedup_model.roofline import critical_context, free_batch, step
from sglang_specbench.errors import UserError

LLAMA, H100 = presets.shape("llama-3.1-8b"), presets.hardware("h100")


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("llama-3.1-8b", 8.03e9, 8.03e9),
        ("llama-3.1-70b", 70.55e9, 70.55e9),
        ("qwen3-4b", 4.02e9, 4.02e9),
        ("qwen3-8b", 8.19e9, 8.19e9),
        ("qwen3-30b-a3b", 30.5e9, 3.3e9),
        ("deepseek-v3", 671e9, 37e9),
    ],
)
def test_parameter_counts_are_the_published_ones(name, total, active):
    shape = presets.shape(name)
    assert shape.parameters == pytest.approx(total, rel=0.002)
    assert shape.active == pytest.approx(active, rel=0.03)  # published with two digits


def test_llama_8b_on_one_h100_in_a_pass_of_four():
    assert round(critical_context(LLAMA, H100, positions=4)) == 1755
    assert free_batch(LLAMA, H100, positions=4, context=512) == 104
    assert free_batch(LLAMA, H100, positions=4, context=1755) > 10**4
    assert free_batch(LLAMA, H100, positions=4, context=1756) is None


def test_the_free_regime_ends_where_arithmetic_takes_over():
    assert step(LLAMA, H100, 104, 4, 512).regime != "arithmetic"
    assert step(LLAMA, H100, 105, 4, 512).regime == "arithmetic"


def test_the_regimes_of_memory():
    assert step(LLAMA, H100, 1, 1, 512).regime == "weights"
    assert step(LLAMA, H100, 64, 1, 8192).regime == "kv"


def test_a_step_is_its_slower_side_and_the_overhead():
    part = step(LLAMA, H100, 8, 4, 1024, overhead_s=1e-3)
    assert part.seconds == max(part.weights_s + part.kv_s, part.arithmetic_s) + 1e-3
    assert part.weights_s == pytest.approx(2 * 8.03e9 / 3.35e12, rel=1e-3)
    assert part.kv_s == pytest.approx(8 * 1024 * 131072 / 3.35e12)


def test_experts_touched():
    assert round(experts_touched(256, 8, 4), 1) == 30.5
    assert experts_touched(256, 8, 1) == pytest.approx(8)
    assert experts_touched(256, 8, 10**5) == pytest.approx(256)


def test_a_mixture_reads_more_for_more_positions():
    mixture = presets.shape("qwen3-30b-a3b")
    reads = [mixture.bytes_read(tokens) for tokens in (1, 4, 16, 10**6)]
    assert reads == sorted(reads)
    assert reads[0] == pytest.approx(2 * mixture.active)
    assert reads[-1] == pytest.approx(2 * mixture.parameters)


def test_latent_attention_caches_little_and_computes_much():
    """DeepSeek-V3 caches 576 numbers a token and layer (arXiv 2405.04434); its absorbed attention is 128 heads wide."""
    latent = presets.shape("deepseek-v3")
    assert latent.kv_bytes == 61 * 576 * 2
    assert latent.attention_flops == 61 * 128 * 2 * (512 + 64 + 512)
    assert critical_context(latent, H100, positions=4) == math.inf  # attention itself is compute-bound
    assert critical_context(LLAMA, H100, positions=80) == math.inf


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(UserError, match=r"--hardware: no preset 'h10' .did you mean 'h100'"):
        presets.hardware("h10")
    with pytest.raises(UserError, match=r"--target: no preset 'nosuch' .known: .*qwen3-8b"):
        presets.shape("nosuch")

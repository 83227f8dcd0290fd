"""Predicted against measured on the paper's printed numbers, and on a run made up to follow the model."""

from statistics import median

import pytest

from harness.commands.model_run import largest_part, predictions_by_target, worst_lines
from harness.load_results import load_results
from harness.speedup_model import presets
from harness.speedup_model.batch_speedup import block_drafter
from harness.speedup_model.predict import Prediction, overhead_ms, predictions, residuals
from harness.speedup_model.question import Question
from harness.speedup_model.roofline import step
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import Setting
from sglang_specbench.errors import UserError

QWEN, H100 = presets.shape("qwen3-8b"), presets.hardware("h100")


def test_the_drafter_has_the_published_size():
    """About 1.049 billion parameters for Qwen3-8B without embeddings (five layers and the projection)."""
    drafter = block_drafter(QWEN)
    assert drafter.parameters - QWEN.vocabulary * QWEN.hidden == pytest.approx(1.049e9, rel=0.01)


def test_the_paper_is_within_ten_per_cent():
    """The roofline with AR's own overhead and nothing fitted, on the greedy 8B settings.

    HumanEval is left out, as in the paper's Table 3: its short answers make prefill a fifth of the time.
    """
    found = [p for p in predictions(load_results("paper"), QWEN, H100, 512) if p.setting.target == "Qwen3-8B"]
    greedy = [
        abs(p.residual) for p in found if (p.setting.temperature, p.setting.benchmark != "humaneval") == (0, True)
    ]
    assert len(greedy) == 40  # eight sets, five drafters
    assert median(greedy) < 0.05
    assert max(greedy) < 0.10


def test_a_run_that_follows_the_model_leaves_no_residual():
    overhead, tau, batch = 1.5, 5.0, 4
    token = 1000 * step(QWEN, H100, batch, 1, 512).seconds + overhead
    passes = step(QWEN, H100, batch, 16, 512).seconds + step(block_drafter(QWEN), H100, batch, 16, 512).seconds
    block = 1000 * passes + 2 * overhead
    place = Setting(target="Qwen3-8B", arm="dflash", benchmark="gsm8k", temperature=0.0, concurrency=batch)

    def number(value):
        return Estimate(value, None, None, 1, "made up")

    results = Results(name="made up")
    results.put(place, "tau", number(tau))
    results.put(place, "throughput", number(batch * tau / block * 1000))
    results.put(place.of("ar"), "throughput", number(batch / token * 1000))
    (only,) = predictions(results, QWEN, H100, 512)
    assert only.overhead_ms == pytest.approx(overhead)
    assert only.measured == pytest.approx(tau * token / block)
    assert only.residual == pytest.approx(0)


def test_the_command_prints_the_regime():
    regime = Question(target="llama-3.1-8b", context=512).roofline_tables()["regime"][0]
    assert (round(regime["critical context"]), regime["free up to batch"]) == (1755, 104)
    assert Question(target="llama-3.1-8b", context=4096).roofline_tables()["regime"][0]["free up to batch"] == "any"


def test_a_mixture_is_never_called_free():
    """DeepSeek-V3, passes of four: 2.5 AR passes at batch 1, within a tenth of one between two batches."""
    for name in ("deepseek-v3", "qwen3-30b-a3b"):
        tables = Question(target=name).roofline_tables()
        regime, passes = tables["regime"][0], tables["passes of a verification"]
        assert not [key for key in regime if "free" in key]
        alone = 1000 * step(presets.shape(name), H100, 1, 1, 512).seconds
        assert regime["a verification at batch 1, in AR passes"] == pytest.approx(passes[0]["ms"] / alone)
        assert regime["a verification at batch 1, in AR passes"] > 2.4
        assert 1 < regime["within 10% of one from batch"] < regime["to batch"]
        assert "experts a layer" in tables


def test_the_end_of_the_search_is_not_called_best():
    """A parallel drafter and free verification: every longer block is better."""
    _, longest = Question(parallel=True).block_tables()["independent acceptance"]
    assert longest["block"] == "longest tried (64): longer is better still"
    _, best = Question().block_tables()["independent acceptance"]
    assert (best["block"], best["drafted"]) == ("best", 8)


def test_every_answer_says_its_assumptions():
    for tables in (
        Question().block_tables(),
        Question().alpha_tables(2.8),
        Question(target="qwen3-8b").roofline_tables(),
    ):
        assert all(line["assumes"] for line in tables["assumptions"])
        assert list(tables)[-1] == "assumptions"


def test_the_largest_residual_is_named():
    place = Setting(target="T", arm="dflash", benchmark="gsm8k", temperature=0.0)
    sizes = {"predicted": 2.0, "tau": 4.0, "token_ms": 6.0, "block_ms": 12.0}
    found = [
        Prediction(setting=place, measured=2.1, overhead_ms=1.0, **sizes),
        Prediction(setting=place.of("domino"), measured=1.7, overhead_ms=3.0, **sizes),
        Prediction(setting=place.of("dspark"), measured=2.0, overhead_ms=2.0, **sizes),
    ]
    part = residuals(found)
    assert (part.count, part.median, part.worst.setting.arm) == (3, pytest.approx(0.05), "domino")
    (line,) = worst_lines({"T": found})
    assert (line["largest %"], line["at"]) == (pytest.approx(-15), "T/domino gsm8k T=0 c=1")
    assert overhead_ms(found) == 2
    assert residuals([]) is overhead_ms([]) is None


def test_the_largest_part_of_a_residual_is_named():
    lines = [
        {"setting": "a", "residual": 30.0, "residual_prefill": 1.0, "residual_gap": -4.0},
        {"setting": "b", "residual": 0.0, "residual_prefill": 3.0, "residual_gap": 0.5},
    ]
    assert largest_part(lines) == {"part": "gap", "%": -4.0, "at": "a"}


def test_only_the_targets_that_a_preset_is_for():
    """The paper has Qwen3-8B and Qwen3-4B; each is predicted by its own sizes."""
    paper = load_results("paper")
    both, one = (predictions_by_target("paper", paper, Question(target=name)) for name in ("", "qwen3-8b"))
    assert set(both) == {"Qwen3-8B", "Qwen3-4B"}
    assert one == {"Qwen3-8B": both["Qwen3-8B"]}
    with pytest.raises(UserError, match=r"has no target 'llama-3\.1-8b' .it has Qwen3-"):
        predictions_by_target("paper", paper, Question(target="llama-3.1-8b"))

"""From a stored run with known truth to settings: seeds, repeats, holes, averages, head cost, closure, noise."""

from dataclasses import replace

import numpy as np
import pytest

from harness.stats import noise
from harness.stats.estimate import Estimate, Missing
from harness.stats.estimates import measure
from harness.stats.headcost import place
from harness.stats.setting import AVERAGE, Setting
from harness.store import run as store
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic

ARMS = ("ar", "dflash", "lilicorr", "domino")
AT = Setting(target="Qwen3-8B", arm="lilicorr", benchmark="gsm8k", temperature=0.0)
SAMPLED = replace(AT, temperature=1.0)


def made_cells(prompts=60):
    greedy = [
        synthetic.cell("Qwen3-8B", arm, name, prompts=prompts, repeat=repeat)
        for arm in ARMS for name in ("gsm8k", "mt-bench", "humaneval", "speed-qualitative") for repeat in (0, 1)
    ]  # fmt: skip
    sampled = [
        synthetic.cell("Qwen3-8B", arm, "gsm8k", 1.0, prompts=prompts, seed=seed)
        for arm in ARMS for seed in (42, 43, 44)
    ]  # fmt: skip
    return [*greedy, *sampled]


@pytest.fixture(scope="module")
def made():
    return list(synthetic.run(made_cells()))


def load(tmp_path, made):
    frames = store.load(synthetic.write(tmp_path, made))
    return measure(frames.cells, frames.rows, "made")


@pytest.fixture(scope="module")
def results(tmp_path_factory, made):
    return load(tmp_path_factory.mktemp("run"), made)


def test_every_interval_holds_the_truth_nearly_always(results):
    """tau of 3 arms x (4 greedy sets + 1 sampled): each 95 % interval may miss with odds of about 1 in 15.

    More than 4 misses in 15 happen with a chance below 0.001 (binomial, 0.07); seeded.
    """
    cells = {(c.arm, c.prompt_set, c.temperature): c for c in made_cells()}
    misses = 0
    for (arm, name, temperature), cell in cells.items():
        if arm != "ar":
            e = results.get(replace(AT, arm=arm, benchmark=name, temperature=temperature), "tau")
            misses += not e.low <= synthetic.truth(cell).tau <= e.high
    assert misses <= 4


def test_a_speedup_is_taken_within_its_allocation(results):
    cells = results.per_cell.set_index(["arm", "benchmark", "temperature", "repeat", "seed"])
    wanted = np.mean(
        [
            cells.throughput[("lilicorr", "gsm8k", 0.0, r, 42)] / cells.throughput[("ar", "gsm8k", 0.0, r, 42)]
            for r in (0, 1)
        ]
    )
    assert results.get(AT, "speedup").value == pytest.approx(wanted)


def test_seeds_are_averaged_with_their_sample_deviation(results):
    per_seed = [results.get(replace(SAMPLED, seed=seed), "tau").value for seed in (42, 43, 44)]
    assert results.get(SAMPLED, "tau").value == pytest.approx(np.mean(per_seed))
    assert results.get(SAMPLED, "tau_sd").value == pytest.approx(np.std(per_seed, ddof=1))
    assert results.get(SAMPLED, "tau_sd").n == 3


def test_turns_make_no_prompts(results):
    assert results.get(replace(AT, benchmark="mt-bench"), "tau").n == 60


def test_categories_partition_the_blocks(results):
    """Pooled tau is the block-weighted mean of the categories' taus; their walls add up to the whole."""
    whole = replace(AT, benchmark="speed-qualitative")
    parts = [s for s in results.settings() if s.category and replace(s, category="") == whole]
    assert len(parts) == len(synthetic.SPEED_CATEGORIES)
    rates = [results.get(s, "throughput").value for s in parts]
    assert min(rates) < results.get(whole, "throughput").value < max(rates)
    assert sum(results.get(s, "tau").n for s in parts) == 60


def test_average_is_the_plain_mean(results):
    sets = ("gsm8k", "mt-bench", "humaneval", "speed-qualitative")
    values = [results.get(replace(AT, benchmark=b), "throughput").value for b in sets]
    assert results.get(replace(AT, benchmark=AVERAGE), "throughput").value == pytest.approx(np.mean(values))


def test_head_cost_is_close_to_what_was_put_in(results):
    """Head of 0.30 ms; answers of equal length cost equal prefill, so what is left is launch noise and block counts."""
    found = results.get(place("Qwen3-8B", "lilicorr"), "head_ms")
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(synthetic.HEAD_MS["lilicorr"], abs=0.25)
    assert "3 benchmarks" in found.method


def test_closure_is_exact(results):
    """100 ln(speedup / predicted) is the sum of its parts to rounding, and the rest is rounding too."""
    parts = ["truncation", "uncounted", "first_token", "prefill", "gap", "rest"]
    for setting in (AT, SAMPLED, replace(AT, benchmark="mt-bench")):
        total = sum(results.get(setting, f"residual_{p}").value for p in parts)
        assert results.get(setting, "residual").value == pytest.approx(total)
        assert results.get(setting, "residual_rest").value == pytest.approx(0, abs=1e-9)
        assert results.get(setting, "residual_truncation").value < 0
        assert results.get(setting, "residual_prefill").value < 0


def test_noise_floor_finds_the_launch_noise_and_none_in_greedy_tau(results):
    """Launch noise 0.2 %, 16 A/A sets: the pooled s has a relative deviation of 18 %; 0.1 to 0.4 % is wide enough."""
    floors = noise.floors(results, "throughput")[("Qwen3-8B", 0.0, 1)]
    s = floors.value / (2.12 * np.sqrt(2))  # t(0.975, 16)
    assert floors.n == 16
    assert 0.5 * synthetic.LAUNCH_NOISE < s < 2 * synthetic.LAUNCH_NOISE
    assert noise.floors(results, "tau")[("Qwen3-8B", 0.0, 1)].value == 0


def test_a_failed_seed_makes_a_hole_with_its_reason(tmp_path, made):
    changed = [
        synthetic.failed(h, "server_died", "exit -9") if (h.cell.arm, h.cell.seed) == ("lilicorr", 43) else (h, r)
        for h, r in made
    ]
    found = load(tmp_path, changed)
    assert found.get(SAMPLED, "tau") == Missing("seed 43: server_died: exit -9")
    assert isinstance(found.get(AT, "tau"), Estimate)


def test_a_failed_repeat_leaves_the_other(tmp_path, made):
    first = next(i for i, (h, _) in enumerate(made) if h.cell.arm == "lilicorr" and h.cell.prompt_set == "gsm8k")
    changed = [synthetic.failed(h, "timeout", "") if i == first else (h, r) for i, (h, r) in enumerate(made)]
    found = load(tmp_path, changed)
    assert isinstance(found.get(AT, "tau"), Estimate)
    assert len(found.sources[AT]) == 1


def test_a_planned_cell_that_was_not_run_makes_a_hole_too(tmp_path, made):
    """Two of three seeds are no mean over seeds."""
    late = [h.cell for h, _ in made if (h.cell.arm, h.cell.seed) == ("lilicorr", 44)]
    frames = store.load(synthetic.write(tmp_path, [(h, r) for h, r in made if h.cell not in late]))
    found = measure(frames.cells, frames.rows, "made", [h.cell for h, _ in made])
    assert found.get(SAMPLED, "tau") == Missing("seed 44: not run yet")
    assert isinstance(found.get(AT, "tau"), Estimate)


def test_without_ar_no_speedup_and_a_missing_benchmark_no_average(tmp_path, made):
    changed = [
        synthetic.failed(h, "oom", "8 GB") if (h.cell.arm, h.cell.prompt_set) == ("ar", "mt-bench") else (h, r)
        for h, r in made
    ]
    found = load(tmp_path, changed)
    reason = found.get(replace(AT, benchmark="mt-bench"), "speedup").reason
    assert reason == "no ok AR cell in the same allocation (seed 42: oom: 8 GB)"
    assert found.get(replace(AT, benchmark=AVERAGE), "speedup").reason.startswith("mt-bench: no ok AR cell")
    assert isinstance(found.get(replace(AT, benchmark=AVERAGE), "tau"), Estimate)


def test_unlike_cells_are_refused_with_key_and_both_values(tmp_path, made):
    header, rows = made[0]
    other = replace(header, cell=replace(header.cell, prompt_version="2", repeat=7))
    with pytest.raises(UserError, match=r"prompt_version is '([12])' in .*parquet and '(?!\1)[12]' in .*parquet"):
        load(tmp_path, [*made, (other, rows)])

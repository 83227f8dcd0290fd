"""What a plan costs, against numbers worked out by hand."""

from itertools import product

import pytest

from harness.commands.plan_budget import show_budget
from harness.speedup_model import presets
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import Setting
from harness.sweep import cost as costing
from harness.sweep.plan import Allocation, Plan, PlannedLaunch
from sglang_specbench.console import Console
from sglang_specbench.errors import UserError
from tests.harness.made import cell

SHAPE, H100 = presets.shape("qwen3-8b"), presets.hardware("h100")
FIELDS = {"target": "Qwen3-8B", "prompts": 100, "max_new_tokens": 256, "ignore_eos": True}


def plan(*cells, draft="D", path="Qwen/Qwen3-8B"):
    """An allocation for each cell."""
    launches = [
        PlannedLaunch(id=str(i), order=0, target_path=path, draft_path=draft if c.draft_digest else "", cells=(c,))
        for i, c in enumerate(cells)
    ]
    return Plan(
        name="t",
        allocations=tuple(
            Allocation(id=f"a{i}", target="Qwen3-8B", seed=42, repeat=0, launches=(launch,))
            for i, launch in enumerate(launches)
        ),
    )


def known(throughput, **setting):
    found = Results(name="r")
    place = {"target": "Qwen3-8B", "arm": "dflash", "benchmark": "gsm8k", "temperature": 0.0, "concurrency": 1}
    found.put(Setting(**{**place, **setting}), "throughput", Estimate(throughput, None, None, 1, "m"))
    return found


def hours(made, results=None, hardware=H100):
    return costing.cost(made, {"Qwen3-8B": SHAPE}, hardware, results)


def test_a_run_with_the_same_set_gives_its_throughput():
    """100 answers of 256 tokens, and a warm-up of 32, at 512 tokens a second, after 90 s."""
    found = hours(plan(cell(**FIELDS)), known(512.0))
    assert found.hours[1] == pytest.approx((90 + (100 * 256 + 2 * 16) / 512) / 3600)
    assert found.sources == {"the run, same set": 1}


def test_a_run_with_other_sets_gives_their_median():
    found = hours(plan(cell(**FIELDS)), known(512.0, benchmark="mbpp"))
    assert found.hours[1] == pytest.approx((90 + (100 * 256 + 2 * 16) / 512) / 3600)
    assert found.sources == {"the run, other sets": 1}


def test_without_a_run_autoregressive_decoding_reads_its_weights_once_a_token():
    """16.38 GB of weights and 0.6 GB of cache at 3.35 TB/s, and a millisecond."""
    found = hours(plan(cell(**FIELDS, arm="ar", proposal="none", draft_digest="")))
    parameters = 2 * 151936 * 4096 + 36 * (4096 * 128 * 2 * (32 + 8) + 3 * 4096 * 12288)
    token_s = (2 * parameters + 4096 * 36 * 2 * 8 * 128 * 2) / 3.35e12 + 1e-3
    assert found.hours[1] == pytest.approx((90 + (100 * 256 + 2 * 16) * token_s) / 3600, rel=1e-3)
    assert found.memory[0].weights_gb == pytest.approx(2 * parameters / 1e9)
    assert found.memory[0].cache_gb == pytest.approx(8192 * 36 * 2 * 8 * 128 * 2 / 1e9)
    assert found.memory[0].drafter_gb == 0


def test_a_block_arm_is_tau_times_cheaper_a_token_and_its_drafter_takes_room():
    arm, ar = hours(plan(cell(**FIELDS))), hours(plan(cell(**FIELDS, arm="ar", proposal="none", draft_digest="")))
    assert 2 < (ar.hours[1] - 0.025) / (arm.hours[1] - 0.025) < costing.TAU
    assert 1 < arm.memory[0].drafter_gb < 3


def test_nothing_known_is_refused_by_name():
    with pytest.raises(UserError, match=r"no time is known for 'Qwen3-8B/dflash gsm8k .*--run"):
        hours(plan(cell(**FIELDS)), hardware=None)


def test_the_schedule_is_within_a_third_of_the_best_and_never_below_the_largest():
    lengths = [5.0, 4.0, 3.0, 3.0, 3.0]
    best = min(
        max(sum(x for x, d in zip(lengths, where, strict=True) if d == device) for device in (0, 1))
        for where in product((0, 1), repeat=len(lengths))
    )
    made = costing._makespan(lengths, 2)
    assert best <= made <= best * 4 / 3
    assert costing._makespan(lengths, 8) == max(lengths)
    assert costing._makespan(lengths, 1) == sum(lengths)


def test_the_command_names_the_largest_allocation_and_what_it_assumes(capsys):
    small, large = cell(**FIELDS), cell(**{**FIELDS, "prompts": 5000})
    show_budget(plan(small, large), "", Console(width=160))
    out = capsys.readouterr().out
    assert "the largest allocation is a1" in out
    assert "roofline (2 cells)" in out
    assert all(f"assumes: {text}" in out for text in costing.ASSUMES)

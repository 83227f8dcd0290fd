"""A speed from a machine that was busy, slowed or drifting is marked; one from a machine that stood still is not."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.gate.verdict import Rules, gate
from harness.schema.header import BY_CALL
from harness.stats import noise, steadiness
from harness.stats.chosen import of_arms
from harness.stats.estimate import Estimate, Missing
from harness.stats.estimates import measure
from harness.stats.setting import AVERAGE, Setting
from harness.store import cell_file
from harness.store.frames import framed
from harness.tables.build import doubts
from tests import synthetic_run as synthetic

STILL = {"other_cpu": 0.03, "steal": 0.001, "load": [1.2, 1.3], "own_cpu": 0.6, "cores": 2, "seconds": 30.0}
PLACE = Setting(target="T", arm="dflash", benchmark="gsm8k", temperature=0.0)


def run(tmp_path, slower=1.0, machine=STILL, **changes):
    """AR, DFlash, AR again; the closing AR is ``slower`` than the opening one. ``changes`` are DFlash's header's."""
    cells = [synthetic.cell("T", a, "gsm8k", prompts=20, replica=r) for a, r in (("ar", 0), ("dflash", 0), ("ar", 1))]
    made = []
    for place, (header, rows) in enumerate(synthetic.run(cells)):
        factor = slower if header.cell.replica else 1.0
        times = {"wall_s": header.wall_s * factor, "machine": machine, "started_at": f"2026-01-01T00:0{place}:00+00:00"}
        moved = [
            replace(r, sent_s=r.sent_s * factor, first_token_s=r.first_token_s * factor, done_s=r.done_s * factor)
            for r in rows
        ]
        made.append((replace(header, **{**times, **(changes if header.cell.arm == "dflash" else {})}), moved))
    return planned(tmp_path / "run", made)


def planned(run_dir, made):
    """The run with a plan of its cells, loaded."""
    made = list(made)
    return measure(*vars(framed([(h, cell_file.as_table(r)) for h, r in made])).values(), run_dir.name,
                   [h.cell for h, _ in made])  # fmt: skip


def test_a_machine_that_stood_still_is_not_marked(tmp_path):
    results = run(tmp_path)
    assert results.unsteady == {}
    assert not any("speed in doubt" in text for found in results.cautions.values() for text in found)


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        ({"other_cpu": 0.6, "load": [6.0, 13.0]}, "other processes used 60 % of the machine's cores (load 13)"),
        ({"steal": 0.1}, "the hypervisor gave 10 % of the machine's cores to others"),
        ({"gpu_others": 2}, "2 other processes were on the GPU"),
        ({"gpu": [{}, {"clocks_throttle_reasons.active": "0x0000000000000040"}]}, "slowed: hardware thermal limit"),
        ({"gpu": [{"clocks_throttle_reasons.active": "0x0000000000000004"}]}, "slowed: power cap"),
    ],
)
def test_each_kind_of_busy_machine_marks_the_speed(tmp_path, machine, text):
    results = run(tmp_path, machine={**STILL, **machine})
    assert any(text in found for found in results.unsteady[PLACE])
    assert any(f"speed in doubt: {found}" in results.cautions[PLACE] for found in results.unsteady[PLACE])


@pytest.mark.parametrize("mask", ["0x0000000000000000", "0x0000000000000001", "[N/A]", ""])
def test_an_idle_or_silent_gpu_is_not_slowed(mask):
    """Bit 0 is the GPU's own idleness (nvml.h: GpuIdle)."""
    assert steadiness.busy({"gpu": [{"clocks_throttle_reasons.active": mask}], "gpu_others": 0}) == []


def test_every_reason_of_a_slowed_gpu_has_its_bit():
    """nvmlClocksThrottleReasons of nvml.h; all at once, by name."""
    bits = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "software thermal limit",
            0x40: "hardware thermal limit", 0x80: "power brake"}  # fmt: skip
    for bit, text in bits.items():
        assert steadiness.busy({"gpu": [{"clocks_throttle_reasons.active": hex(bit)}]}) == [
            f"the GPU was slowed: {text}"
        ]
    found = steadiness.busy({"gpu": [{"clocks_throttle_reasons.active": hex(sum(bits))}]})
    assert found == [f"the GPU was slowed: {text}" for text in sorted(bits.values())]


def test_shares_at_their_limit_are_let_pass():
    still = {"other_cpu": steadiness.OTHER_CPU, "steal": steadiness.STEAL, "gpu_others": 0}
    assert steadiness.busy(still) == []
    assert len(steadiness.busy({"other_cpu": 0.11, "steal": 0.021, "load": [1.0]})) == 2


@pytest.mark.parametrize("slower", [1.06, 1 / 1.06])
def test_an_allocation_that_drifted_marks_its_arms(tmp_path, slower):
    """The opening and closing AR say the same tokens, so the drift is known in closed form."""
    results = run(tmp_path, slower=slower)
    noise_of_launches = 3 * synthetic.LAUNCH_NOISE
    (text,) = results.unsteady[PLACE]
    said = float(text.split("moved by ")[1].split(" %")[0])
    assert said == pytest.approx(100 * (1 / slower - 1), abs=100 * noise_of_launches)


def test_a_drift_below_the_limit_does_not(tmp_path):
    assert run(tmp_path, slower=1.01).unsteady == {}


def test_drift_pools_the_cells_of_an_allocation():
    class Line:
        arm, allocation = "ar", "a"

        def __init__(self, replica, wall_s):
            self.replica, self.wall_s = replica, wall_s

    lines = [(Line(0, 10.0), 20.0), (Line(0, 30.0), 10.0), (Line(1, 12.0), 20.0), (Line(1, 28.0), 11.0)]
    opening, closing = 500 / 40, (240 + 308) / 40
    assert steadiness.drifts(lines)["a"] == pytest.approx(math.log(closing / opening))
    assert steadiness.drifts(lines[:2]) == {}
    assert steadiness.drifts([(Line(0, 10.0), 0.0), (Line(1, 10.0), 20.0)]) == {}  # nothing to divide by


@pytest.mark.parametrize(("ratio", "said"), [(1.5, "+50.0 %"), (0.5, "-50.0 %"), (1.031, "+3.1 %")])
def test_a_drift_is_said_in_per_cent(ratio, said):
    line = SimpleNamespace(arm="ar", allocation="a", machine=None)
    (found,) = steadiness.doubts(line, {"a": math.log(ratio)}, {})
    assert found == f"AR itself moved by {said} from the opening to the closing of a, more than 3 %"
    assert steadiness.doubts(line, {"a": math.log(1.029)}, {}) == []


def test_a_cell_that_was_tried_again_after_the_closing_ar_is_marked(tmp_path):
    results = run(tmp_path, started_at="2026-01-02T00:00:00+00:00")
    assert "measured after the closing AR" in results.unsteady[PLACE][0]


def test_remote_arms_have_a_speedup_only_over_ar_of_the_same_call(tmp_path):
    """AR and arm measured by two calls of --server: no speedup, and the reason says why."""
    apart = run(tmp_path / "apart", allocation=f"T-s42-r0{BY_CALL}cafe")
    missing = apart.get(PLACE, "speedup")
    assert isinstance(missing, Missing)
    assert "measured with --server, and not together with AR in one call" in missing.reason


def test_two_ar_cells_of_one_remote_server_are_no_repeat(tmp_path):
    cells = [synthetic.cell("T", "ar", "gsm8k", prompts=20, replica=r) for r in (0, 1)]
    made = [(replace(h, allocation=f"T-s42-r0{BY_CALL}cafe"), rows) for h, rows in synthetic.run(cells)]
    results = planned(tmp_path, made)
    assert noise.floors(results, "throughput") == {}
    assert results.unsteady == {}


def test_block_times_of_a_concurrency_that_was_never_reached_are_refused_with_the_reason(tmp_path):
    cells = [synthetic.cell("T", arm, "gsm8k", prompts=6, concurrency=c) for arm in ("ar", "dflash") for c in (4, 32)]
    results = planned(tmp_path, synthetic.run(cells))
    for name in ("block_ms", "decode_block_ms"):
        assert isinstance(results.get(replace(PLACE, concurrency=4), name), Estimate)
        refused = results.get(replace(PLACE, concurrency=32), name)
        assert refused == Missing("6 prompts never reach concurrency 32: no block time")
    assert isinstance(results.get(replace(PLACE, concurrency=32), "tau"), Estimate)


def test_the_gate_gives_no_verdict_on_a_speed_in_doubt_and_judges_tau_all_the_same(tmp_path):
    still, busy = run(tmp_path / "a"), run(tmp_path / "b", machine={**STILL, "other_cpu": 0.6})
    assert gate(still, run(tmp_path / "c"), Rules(metrics=("throughput",))).verdict != "invalid"
    outcome = gate(still, busy, Rules(metrics=("throughput",)))
    assert outcome.verdict == "inconclusive"
    assert any("candidate: speed in doubt: other processes used 60 %" in t.reason for t in outcome.troubles)
    assert gate(still, busy, Rules(metrics=("tau",))).verdict == "ok"


def test_the_average_over_a_marked_benchmark_is_marked(tmp_path):
    cells = [synthetic.cell("T", arm, name, prompts=10) for name in ("gsm8k", "math500") for arm in ("ar", "dflash")]
    made = [
        (replace(h, machine={"other_cpu": 0.5} if h.cell.prompt_set == "gsm8k" else STILL), rows)
        for h, rows in synthetic.run(cells)
    ]
    results = planned(tmp_path, made)
    assert results.unsteady[replace(PLACE, benchmark=AVERAGE)]
    assert replace(PLACE, benchmark="math500") not in results.unsteady


def test_figures_and_comparisons_are_told_even_of_some_arms(tmp_path):
    busy, still = run(tmp_path / "a", machine={**STILL, "other_cpu": 0.6}), run(tmp_path / "b")
    for seen in (busy, of_arms(busy, "dflash")):
        assert any("settings: other processes used 60 %" in text for text in doubts(seen))
    assert not any("Speed in doubt" in text for text in doubts(still))

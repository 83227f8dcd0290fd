"""What a run lacks is said at each number that would be another one with it."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from harness.load_results import load_results
from harness.stats.estimate import Estimate, Missing
from harness.stats.headcost import place
from harness.stats.setting import AVERAGE, Setting
from harness.tables import registry
from harness.tables.build import doubts
from harness.tables.render import markdown
from tests import synthetic_run as synthetic

ARMS, SETS = ("ar", "dflash", "lilicorr"), ("gsm8k", "mbpp", "alpaca", "math500")
AT = Setting(target="toy", arm="lilicorr", benchmark="gsm8k", temperature=0.0)
GREEDY = [synthetic.cell("toy", arm, name, prompts=12, repeat=r) for arm in ARMS for name in SETS for r in (0, 1)]
SEEDED = [synthetic.cell("toy", arm, "gsm8k", 1.0, prompts=12, seed=s) for arm in ARMS for s in (42, 43, 44)]
MADE = [*synthetic.run([*GREEDY, *SEEDED])]


def run(folder, gone=lambda _: False, planned=None):
    made = [(h, r) for h, r in MADE if not gone(h.cell)]
    return load_results(str(synthetic.write(folder, made, planned=[*GREEDY, *SEEDED] if planned is None else planned)))


def said(results, name):
    return markdown(registry.table(results, name)).replace("\\", "")


def test_a_whole_run_has_no_doubt_but_its_audits(tmp_path):
    found = run(tmp_path)
    assert [text for text in doubts(found) if "unaudited" not in text] == []
    assert found.gaps == {}
    assert found.cautions.get(AT, ()) == ()


def test_two_of_three_seeds_are_a_hole_and_named(tmp_path):
    found = run(tmp_path, lambda c: (c.arm, c.seed) == ("lilicorr", 44))
    assert found.get(replace(AT, temperature=1.0), "tau") == Missing("seed 44: not run yet")
    assert "seed 44: not run yet" in said(found, "5")
    assert "1 of 33 planned cells have no number: toy/lilicorr 1 missing (gsm8k)" in said(found, "5")


def test_fewer_seeds_by_plan_are_said_beside_the_number(tmp_path):
    """Nothing is missing: the sweep gave one arm fewer seeds than its rivals."""
    few = [c for c in (*GREEDY, *SEEDED) if (c.arm, c.seed) != ("lilicorr", 44)]
    found = run(tmp_path, lambda c: c not in few, planned=few)
    text = "mean over seeds 42, 43 alone, beside arms with seeds 42, 43, 44"
    assert found.cautions[replace(AT, temperature=1.0)] == (text,)
    assert text in said(found, "5")


def test_a_lost_repeat_leaves_a_number_with_a_caution(tmp_path):
    found = run(tmp_path, lambda c: (c.arm, c.prompt_set, c.repeat) == ("lilicorr", "gsm8k", 1) and not c.temperature)
    assert isinstance(found.get(AT, "throughput"), Estimate)
    assert found.cautions[AT] == ("without 1 planned cells: seed 42 repeat 1: not run yet",)
    assert any("gsm8k: without 1 planned" in text for text in found.cautions[replace(AT, benchmark=AVERAGE)])


def test_a_lost_repeat_of_ar_is_said_at_every_speedup(tmp_path):
    found = run(tmp_path, lambda c: (c.arm, c.prompt_set, c.repeat) == ("ar", "gsm8k", 1) and not c.temperature)
    assert found.cautions[AT][0].startswith("without 1 AR cells, which speedups are taken over")


def test_an_average_over_half_of_the_sets_is_none_and_names_them(tmp_path):
    found = run(tmp_path, lambda c: c.arm == "lilicorr" and c.prompt_set in SETS[:2])
    reason = found.get(replace(AT, benchmark=AVERAGE), "tau").reason
    assert reason.startswith("2 of 4 benchmarks are missing: gsm8k: seed 42: not run yet; mbpp: ")
    assert isinstance(found.get(replace(AT, arm="dflash", benchmark=AVERAGE), "tau"), Estimate)


def test_a_head_cost_without_a_benchmark_says_so_and_so_does_its_control(tmp_path):
    for i, arm in enumerate(("lilicorr", "dflash")):
        found = run(tmp_path / str(i), lambda c, arm=arm: c.arm == arm and c.prompt_set == "mbpp")
        assert f"{arm} mbpp: left out: seed 42: not run yet" in found.cautions[place("toy", "lilicorr")]


def test_without_a_plan_every_table_says_that_it_cannot_tell(tmp_path):
    run(tmp_path)
    (tmp_path / "plan.json").unlink()
    assert "no plan.json: what this run was to measure, and lacks, cannot be told" in said(
        load_results(str(tmp_path)), "5"
    )


def test_cells_of_no_plan_are_named(tmp_path):
    kept = [c for c in (*GREEDY, *SEEDED) if c.arm != "lilicorr"]
    assert "11 ok cells are in no plan, and are counted: toy/lilicorr" in said(run(tmp_path, planned=kept), "5")


@pytest.mark.parametrize("command", [("compare", "{run}", "{run}"), ("tables", "{run}", "--table", "5")])
def test_the_commands_print_it(tmp_path, command):
    from sglang_specbench.cli import app

    run(tmp_path, lambda c: c.arm == "lilicorr")
    done = CliRunner().invoke(app, [part.format(run=tmp_path) for part in command])
    assert "11 of 33 planned cells have no number" in done.output

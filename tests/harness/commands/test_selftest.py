"""`specbench selftest` against the fake server: one page, from the same runs as `specbench run`; failures are on it."""

from dataclasses import replace

import pytest
import typer

from harness.commands import selftest
from harness.report.selftest_page import Measured, page
from harness.stats.greedy_match import Equality
from harness.sweep.sweep import load
from sglang_specbench.arms import ARMS
from sglang_specbench.machine import inspect_machine, unsupplied
from tests.harness.made import cell, header
from tests.harness.measure.conftest import fake  # noqa: F401

ATTESTED = {
    "draft_model": "DFlashDraftModel", "head": "_DflashDraftSampler", "head_captured": True, "window": 16,
    "draft_graph_sizes": [1, 2, 4], "proposal": "argmax", "verification": "exact",
    "patches": {"cpu_topk": "applied", "dflash2_argmax": "applied"},
}  # fmt: skip
COUNTED = {"requests": 2, "tokens": 32, "verify_calls": 10}


def written(outcome="ok", equal=8, verdict="pass"):
    made = header(cell(), attestation=ATTESTED, counters=COUNTED, launch="a")
    if outcome != "ok":
        made = replace(made, outcome=outcome, reason="the | server said\nno", wall_s=None)
    same = Equality(cell="c", label="mini/dflash", arm="dflash", equal=equal, compared=8, required=True, first="p3")
    run = Measured(dtype="float32", headers=(made,), equal=(same,))
    certificate = {"arm": "dflash", "verdict": verdict, "samples": 800, "attestation": {"dtype": "float32"}}
    return page(inspect_machine(), "cpu", [run], [certificate], 90)


def test_the_page_shows_the_attestation_line_by_line():
    text = written()
    assert text.startswith("# specbench selftest: all is well\n")
    (line,) = [x for x in text.splitlines() if x.startswith("| dflash/argmax")]
    assert [part.strip() for part in line.strip("|").split("|")] == [
        "dflash/argmax", "T=0", "3.00", "DFlashDraftModel", "_DflashDraftSampler", "True", "16", "1, 2, 4", "argmax",
        "exact", "dflash2_argmax, 1 of every server", "ok",
    ]  # fmt: skip
    assert "Greedy outputs equal to AR's: 8 of 8 (1 cells)." in text
    assert "- dflash (None, float32): pass, 800 samples" in text
    assert all(f"- {name}: " in text for name in ("standalone", "dspark-scheduled"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"outcome": "not_attested"}, "1 cells failed"),
        ({"equal": 7}, "1 cells differ from AR"),
        ({"verdict": "inconclusive"}, "no passed audit of dflash"),
    ],
)
def test_what_is_not_well_stands_in_the_first_line(wrong, said):
    text = written(**wrong)
    assert said in text.splitlines()[0]
    assert "|\n" not in text.replace(" |\n", "")  # a reason with a bar or a line break stays one cell


@pytest.mark.slow
def test_both_precisions_are_run_and_a_second_call_measures_nothing(tmp_path, fake, monkeypatch):  # noqa: F811
    sweep = load("selftest")
    small = replace(sweep, panel=tuple(replace(p, arms=("ar", "dflash"), temperatures=(0.0, 1.0)) for p in sweep.panel))
    monkeypatch.setattr(selftest, "load", lambda _: small)
    monkeypatch.setattr(selftest, "_audit", lambda *_: ["pass"])
    for _ in range(2):
        with pytest.raises(typer.Exit) as left:
            selftest.selftest(out=tmp_path / "s", device="cpu")
        assert left.value.exit_code == 0
    text = (tmp_path / "s" / "selftest.md").read_text()
    assert text.startswith("# specbench selftest: all is well")
    assert "## float32" in text
    assert "## bfloat16" in text
    assert text.count("| dflash/argmax |") == 2


def test_the_sweep_has_every_arm_that_the_mini_models_can_serve():
    sweep = load("selftest")
    (panel,) = sweep.panel
    drafters = sweep.target["mini"].drafters
    served = [a for a in ARMS.values() if (not a.algorithm or a.checkpoint in drafters) and not unsupplied(a)]
    assert set(panel.arms) == {a.name for a in served}


def test_arms_without_a_checkpoint_are_added_where_they_run(monkeypatch):
    machine = inspect_machine()
    monkeypatch.setattr(selftest, "inspect_machine", lambda: replace(machine, gpus=("H100",), problems=()))
    gained = selftest._with_plain_arms(load("selftest"), "cuda", selftest.inspect_machine()).panel[0].arms
    assert set(gained) - set(load("selftest").panel[0].arms) == {"ngram"}
    assert (
        selftest._with_plain_arms(load("selftest"), "cpu", selftest.inspect_machine()).panel[0].arms
        == load("selftest").panel[0].arms
    )

"""What a verdict rests on: levels, margins, numbers of prompts and allocations, and which trouble decides."""

from dataclasses import replace

import pytest

from harness.gate.troubles import Trouble
from harness.gate.verdict import GateOutcome, gate
from tests.harness.gate.test_gate_command import ARMS, RULES, make


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return make(tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """lilicorr 5 % slower."""
    return make(tmp_path_factory.mktemp("new"), first_repeat=3, slow=1.05)


@pytest.mark.parametrize(
    ("verdict", "code"), [("ok", 0), ("regression", 1), ("inconclusive", 3), ("invalid", 4), ("infrastructure", 5)]
)
def test_exit_codes_are_those_of_the_docs(verdict, code):
    assert GateOutcome(verdict=verdict, judgements=()).exit_code == code


def test_levels_and_margins_are_those_of_the_rules(old, new):
    """The false-alarm rate is shared out over two metrics, three arms and two looks."""
    found = gate(old, new, replace(RULES, looks=2)).judgements
    assert [j.alpha for j in found] == pytest.approx([0.01 / (2 * 3 * 2)] * 15)
    for j in found:
        assert j.margin == pytest.approx({"tau": 0.05, "throughput": 0.1}[j.metric])
        assert j.low <= j.effect <= j.high
    assert gate(old, new, replace(RULES, metrics=("tau",))).judgements[0].alpha == pytest.approx(0.01 / 3)


def test_each_arm_is_judged_pooled_and_by_setting(old, new):
    found = gate(old, new, RULES).judgements
    assert [j.scope == "pooled" for j in found] == [True] * 5 + [False] * 10  # pooled ones first
    assert {(j.arm, j.metric) for j in found[:5]} == {
        ("ar", "throughput"), *((arm, metric) for arm in ARMS[1:] for metric in ("tau", "throughput"))
    }  # fmt: skip
    assert {(j.metric, j.scope == "pooled", j.n) for j in found} == {
        ("tau", True, 300), ("tau", False, 150), ("throughput", True, 3), ("throughput", False, 3)
    }  # fmt: skip


@pytest.mark.parametrize(("metric", "arms"), [("tau", 2), ("throughput", 3)])
def test_a_metric_that_was_not_asked_for_is_not_judged(old, new, metric, arms):
    found = gate(old, new, replace(RULES, metrics=(metric,))).judgements
    assert {j.metric for j in found} == {metric}
    assert sum(j.scope == "pooled" for j in found) == arms


def test_a_real_drop_smaller_than_the_margin_passes_with_a_note(old, new):
    outcome = gate(old, new, replace(RULES, throughput_margin=0.2))
    assert (outcome.verdict, outcome.failed) == ("ok", ())
    noted = {(j.arm, j.metric) for j in outcome.judgements if j.note and j.scope == "pooled"}
    assert noted == {("lilicorr", "throughput")}
    assert {j.note for j in outcome.judgements if j.note} == {"a real drop, smaller than the margin"}


def test_the_worst_trouble_decides_and_stands_first(old, tmp_path):
    """A dead server beside another device: not a matter of the machine, these runs cannot be compared."""
    outcome = gate(old, make(tmp_path, first_repeat=3, fail="server_died", device="other"), RULES)
    codes = [t.code for t in outcome.troubles]
    assert (outcome.exit_code, codes, outcome.judgements) == (4, sorted(codes, key=(4, 5, 3).index), ())
    assert {4, 5} <= set(codes)
    assert isinstance(outcome.troubles[0], Trouble)


def test_what_only_the_candidate_has_is_named_and_not_judged(old, tmp_path):
    new = make(tmp_path, first_repeat=3)
    fewer = replace(old, planned=tuple(c for c in old.planned if c.prompt_set != "mbpp"))
    notes = gate(fewer, new, RULES).notes
    (found,) = [note for note in notes if note.startswith("not judged, only in the candidate: ")]
    assert found.count("mbpp") == 3
    assert "gsm8k" not in found

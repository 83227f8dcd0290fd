"""Facts of cells, by hand: what is taken from a line, and what is said where two differ."""

import math

import numpy as np

from harness.schema.facts import between, judged, unlike

PLACE = {"target": "toy", "arm": "dflash", "prompt_set": "gsm8k", "tier": "", "temperature": 0.0, "concurrency": 1}


def line(**changes):
    """A measured cell's."""
    return judged({**PLACE, "prompts": 8, "prompts_digest": "p", **changes})


def test_values_are_plain_and_hashable():
    found = judged({
        "dtype": math.nan, "server": ["--a", ["b", math.nan]], "seed": np.int64(3), "capacity": 1.5,
        "attestation": {"patches": {"b": 1, "a": 2}, "graph_sizes": [1, 2]}, "env_later": None,
    })  # fmt: skip
    assert found == {
        "dtype": None, "server": ("--a", ("b", None)), "seed": 3, "capacity": 1.5,
        "attestation.patches": '{"a": 2, "b": 1}', "attestation.graph_sizes": (1, 2), "env_later": None,
    }  # fmt: skip
    assert type(found["seed"]) is int


def test_what_is_only_shown_is_not_judged_and_a_cell_may_have_no_attestation():
    assert judged({"log_tail": "x", "attestation": None, "environment": {}, "env_load": 3}) == {}


def test_the_first_owner_stays():
    lines = [("a", line(prompts=1)), ("b", line(prompts=2)), ("c", line(prompts=1)), ("d", line(prompts=3))]
    assert [(u.field, u.value, u.owner, u.other, u.other_owner) for u in unlike(lines)] == [
        ("prompts", 1, "a", 2, "b"), ("prompts", 1, "a", 3, "d")
    ]  # fmt: skip


def test_a_key_that_is_none_of_environment_or_attestation_is_not_judged():
    assert list(unlike([("a", line(column=1)), ("b", line(column=2))])) == []
    assert [u.field for u in unlike([("a", line(env_later=1)), ("b", line(env_later=2))])] == ["env_later"]


def test_cells_of_other_places_may_differ():
    assert list(unlike([("a", line(prompts=1)), ("b", line(prompts=2, concurrency=4))])) == []


def test_a_planned_cell_is_judged_by_what_is_planned():
    """It has no attestation yet, which is no other attestation."""
    measured = line(attestation={"window": 16}, env_driver="550")
    assert list(unlike([("file", measured), ("the plan", judged({**PLACE, "prompts": 8}))])) == []
    (found,) = unlike([("file", measured), ("the plan", judged({**PLACE, "prompts": 9}))])
    assert str(found) == "unlike cells: prompts is 8 in file and 9 in the plan"


def test_two_runs_name_each_pair_of_values_once_with_its_first_cells():
    old = [line(concurrency=c, env_driver="1") for c in (1, 2, 4, 16)]
    new = [line(concurrency=c, prompts=n, env_driver="2") for c, n in ((1, 9), (2, 9), (4, 8), (8, 7))]
    assert between(old, new, ["prompts", "env_driver", "ignore_eos"]) == [
        ("prompts", "toy gsm8k 0.0 1", "8", "9"), ("env_driver", "", "1", "2")
    ]  # fmt: skip


def test_several_values_of_one_run_are_listed_in_order():
    assert between([line(device="b"), line(device="a")], [line(device="a")], ["device"]) == [
        ("device", "", "a, b", "a")
    ]

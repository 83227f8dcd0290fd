"""The contract: the paper's values, the schedule's shape, and complaints that name the key."""

import math
import tomllib

import pytest

from drafters.training.contract import PAPER, Contract
from sglang_specbench.config import from_dict
from sglang_specbench.errors import UserError


@pytest.fixture
def table():
    return tomllib.loads(PAPER.read_text())


def test_the_paper_trains_130968_steps_on_its_8b_corpus():
    assert Contract.load(PAPER).steps(1_397_048) == 130_968
    assert Contract.load(PAPER).steps(1_396_889) == 130_956


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_the_rate_warms_up_for_four_per_cent_and_then_only_falls(table, schedule):
    contract = from_dict(Contract, table | {"schedule": schedule}, "x")
    rates = [contract.rate(step, 1000) for step in range(1000)]
    assert rates[0] == 1 / 40
    assert max(rates) == rates[39] == rates[40] == 1
    assert rates[40:] == sorted(rates[40:], reverse=True)
    assert 0 < rates[-1] < 2e-3


def test_linear_and_cosine_are_what_they_say(table):
    linear = from_dict(Contract, table | {"warm_up": 0.0}, "x")
    cosine = from_dict(Contract, table | {"warm_up": 0.0, "schedule": "cosine"}, "x")
    assert linear.rate(51, 101) == 0.5
    assert math.isclose(cosine.rate(51, 101), 0.5)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"batch": 0}, "batch 0 .*write 1 or more"),
        ({"arms": []}, "arms .*name each"),
        ({"arms": ["dflash", "dflash"]}, "arms .*name each"),
        ({"warm_up": 1.0}, "warm_up 1 .*less than 1"),
        ({"batch": 64, "micro_batch": 3}, "micro_batch 3: change one"),
        ({"schedule": "step"}, "schedule.*write one of them"),
        ({"learning_rat": 1.0}, "learning_rate"),
    ],
)
def test_a_bad_value_is_named(table, change, named):
    with pytest.raises(UserError, match=named):
        from_dict(Contract, table | change, "contract.toml")


def test_the_digest_covers_what_changes_weights_and_nothing_else(table):
    contract = from_dict(Contract, table, "x")
    assert contract.digest() != from_dict(Contract, table | {"anchors": 256}, "x").digest()
    assert contract.digest() == from_dict(Contract, table | {"checkpoint_every": 7}, "x").digest()

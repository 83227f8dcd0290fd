"""A cell's name covers everything that can change its number."""

import json
from dataclasses import fields

import pytest

from harness.schema.cell import Cell
from tests.harness.made import cell

OTHER = {str: "other", int: 7, float: 0.5, bool: True, tuple: ("x",)}


@pytest.mark.parametrize("name", [f.name for f in fields(Cell)])
def test_every_field_is_part_of_the_id(name):
    one = cell()
    value = OTHER[type(getattr(one, name))]
    assert cell(**{name: value}).id != one.id


def test_the_id_is_stable_across_versions_of_python():
    """Frozen: a change of this value orphans every stored cell, so it needs a reason in the CHANGELOG."""
    assert cell(prompts=2).id == "abea817df3a07bf7"


def test_a_cell_survives_json():
    one = cell(server=("--a", "1"), versions=("sglang 0.5.23",))
    assert Cell.from_dict(json.loads(json.dumps(vars(one)))) == one


def test_the_launch_key_ignores_what_one_server_can_vary():
    same = cell(prompt_set="mbpp", tier="mixed", temperature=1.0, concurrency=4, max_new_tokens=1, ignore_eos=True)
    assert same.launch_key == cell().launch_key
    for change in ({"seed": 43}, {"proposal": "sampled"}, {"replica": 1}, {"repeat": 1}, {"capacity": 8}):
        assert cell(**change).launch_key != cell().launch_key


def test_label_names_tier_and_closing_bracket():
    assert cell(tier="mixed").label == "mini/dflash gsm8k/mixed T=0 seed 42 c=1 r0"
    assert cell(arm="ar", replica=1).label.endswith("r0 closing")

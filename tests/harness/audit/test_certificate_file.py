"""The file of a certificate: whom it speaks for, what replaces it, what is no certificate."""

import json

import pandas as pd
import pytest

from harness.audit.certificate_file import load, path, speaks_for, write
from harness.audit.coverage import read, unaudited
from harness.audit.page import page
from harness.schema.comparable import CERTIFIED
from sglang_specbench.errors import UserError
from tests.harness.audit.test_certificate import greedy, made

CELL = {
    "arm": "lilicorr", "target_digest": "ab", "draft_digest": "cd", "device": "cpu", "dtype": "float32", "server": (),
    "versions": ("sglang 0.5.23", "specbench 0.1.0"),
}  # fmt: skip
OTHERS = [
    {"arm": "dspark"},
    {"target_digest": "x"},
    {"draft_digest": "x"},
    {"device": "cuda"},
    {"dtype": "bfloat16"},
    {"server": ("--attention-backend", "fa3")},
    {"versions": ("sglang 0.5.22", "specbench 0.1.0")},
]


@pytest.fixture
def place(tmp_path):
    return path(tmp_path / "certificates", "mini", "lilicorr", "sampled", "cpu")


def test_the_files(place):
    write(made(), place)
    assert place.name == "mini-lilicorr-sampled-cpu.json"
    data = load(place)
    assert {"arm", "proposal", "target_digest", "draft_digest", "verdict", "date", "versions", "attestation", "samples",
            "false_alarm", "smallest_bias", "smallest_p", "power", "rules"} <= set(data)  # fmt: skip
    assert place.with_suffix(".md").read_text() == page(made())
    assert sorted(p.name for p in place.parent.iterdir()) == [f"{place.stem}.json", f"{place.stem}.md"]


def test_an_infinite_margin_is_written_as_null(place):
    write(made(greedy=(greedy(margin=float("inf")),)), place)
    assert load(place)["greedy"][0]["divergences"][0]["margin"] is None


def test_it_speaks_for_just_what_it_names(place):
    write(made(), place)
    assert speaks_for(load(place), CELL)
    for other in OTHERS:
        assert not speaks_for(load(place), {**CELL, **other}), other


def test_one_by_other_rules_does_not_count(place):
    write(made(), place)
    place.write_text(json.dumps({**load(place), "rules": 1}))
    assert not speaks_for(load(place), CELL)
    place.write_text('{"verdict": "pass", "prompt": "of long ago"}')
    assert not speaks_for(load(place), CELL)
    write(made(), place)
    assert load(place)["earlier"] == []


def test_tables_take_a_passed_one_and_only_for_its_cells(place, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    write(made(), place)
    cells = pd.DataFrame([CELL, {**CELL, "versions": list(CELL["versions"])}])
    assert unaudited(cells, read([run])) == {}
    for other in OTHERS[1:]:
        assert unaudited(pd.DataFrame([{**CELL, **other}]), read([run])) == {"lilicorr": "unaudited"}, other
    write(made(tested=20), place)
    assert unaudited(cells, read([run])) == {"lilicorr": "inconclusive"}


def test_one_arm_with_several_weights_has_the_worst_mark(place, tmp_path):
    """The last of its weights decided: an arm audited with one target printed clean for another, too."""
    write(made(), place)
    cells = [{**CELL, "target_digest": "x"}, CELL]
    for order in (cells, cells[::-1]):
        assert unaudited(pd.DataFrame(order), read([tmp_path / "run"])) == {"lilicorr": "unaudited"}
    failed = [{**json.loads(place.read_text()), "verdict": "fail"}]
    for order in (cells, cells[::-1]):
        assert unaudited(pd.DataFrame(order), failed) == {"lilicorr": "fail"}


def test_the_fields_tried_here_are_those_of_the_table():
    assert {name for other in OTHERS for name in other} == set(CERTIFIED)


def test_what_it_replaces_is_remembered(place):
    write(made(tested=20), place)
    write(made(date="2026-12-01T00:00:00+00:00"), place)
    assert load(place)["earlier"] == [{"date": "2026-11-30T00:00:00+00:00", "samples": 4000, "verdict": "inconclusive"}]
    assert "- replaces inconclusive of 2026-11-30" in place.with_suffix(".md").read_text()
    write(made(draft_digest="other weights"), place)
    assert load(place)["earlier"] == []


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"arm": "lilicorr"}'])
def test_what_is_no_certificate(place, text):
    place.parent.mkdir()
    place.write_text(text)
    with pytest.raises(UserError, match=r"sampled-cpu\.json: not a certificate: .*move it away"):
        load(place)


def test_a_null_in_it_is_no_certificate_either(place):
    write(made(), place)
    place.write_text(json.dumps({**load(place), "versions": None}))
    with pytest.raises(UserError, match="not a certificate"):
        load(place)


def test_prompts_that_were_left_out_are_counted_in_file_and_page(place):
    write(made(skipped=3), place)
    assert load(place)["skipped"] == 3
    assert "3 prompts of the set were too long" in place.with_suffix(".md").read_text()
    assert "too long" not in page(made())


@pytest.mark.parametrize("earlier", [7, "x", [1], [{}], {"date": ""}])
def test_what_a_certificate_replaced_is_of_its_type_or_refused(place, earlier):
    write(made(), place)
    place.write_text(json.dumps({**json.loads(place.read_text()), "earlier": earlier}))
    with pytest.raises(UserError, match="earlier"):
        load(place)

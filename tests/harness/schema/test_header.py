"""A header says what happened, refuses to say two things at once, and survives JSON."""

import pytest

from harness.schema.header import Header
from sglang_specbench.errors import UserError
from tests.harness.made import cell, header


def test_round_trip():
    one = header(cell(server=("--x", "1")), cautions=("few blocks",), server_argv=("python", "-m"), warmup={"n": 2})
    assert Header.from_json(one.to_json()) == one


@pytest.mark.parametrize("change", [{"outcome": "timeout"}, {"wall_s": None}, {"outcome": "fine"}])
def test_an_outcome_decides_whether_there_is_a_time(change):
    with pytest.raises(ValueError, match="outcome"):
        header(**change)


def test_another_schema_is_refused():
    text = header().to_json().replace('"schema": 3', '"schema": 99')
    with pytest.raises(UserError, match=r"schema 99 is not 3, .*\(of another version\)"):
        Header.from_json(text)


def test_the_schema_without_digests_says_how_to_go_on():
    text = header().to_json().replace('"schema": 3', '"schema": 1')
    with pytest.raises(UserError, match=r"schema 1 is not 3, .*of an older version: measure the cell again"):
        Header.from_json(text)

"""The reference pages' tables say of each key what the dataclass that reads it says, and leave none out."""

from dataclasses import dataclass, field
from typing import Literal, NotRequired, TypedDict

import pytest

from sglang_specbench.key_table import key_table


@dataclass(frozen=True, kw_only=True)
class Inner:
    x: int


@dataclass(frozen=True, kw_only=True)
class File:
    """A file."""

    name: str  # a | name
    kind: Literal["a", "b"] = "a"  # which
    numbers: tuple[float, ...] = ()  # several
    # of them
    tables: dict[str, Inner] = field(default_factory=dict)  # by name
    perhaps: int | None = None  # or not

    source: str = field(default="", compare=False)  # the loader's


class Line(TypedDict):
    id: str  # whose
    size: NotRequired[int]  # how large


@dataclass(frozen=True)
class Silent:
    here: int  # said
    gone: int


def test_a_table_of_a_dataclass():
    assert key_table(File).splitlines() == [
        "| key | type | default | meaning |",
        "|---|---|---|---|",
        "| `name` | text | required | a \\| name |",
        '| `kind` | `"a"` or `"b"` | `"a"` | which |',
        "| `numbers` | list of number | `[]` | several of them |",
        "| `tables` | table of table |  | by name |",
        "| `perhaps` | whole number | `null` | or not |",
    ]


def test_a_table_of_a_typed_dict_and_of_a_part():
    assert key_table(Line).splitlines()[2:] == [
        "| `id` | text | required | whose |", "| `size` | whole number |  | how large |",
    ]  # fmt: skip
    assert key_table(Line, without=("size",), required="").splitlines()[2:] == ["| `id` | text |  | whose |"]


def test_a_key_without_a_meaning_is_an_error():
    with pytest.raises(ValueError, match=r"Silent\.gone has no comment"):
        key_table(Silent)

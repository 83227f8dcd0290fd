"""What of a stored header is reckoned with, although its tables are free: each such value is of its type, or named.

A digest shows that a file was altered, not that who wrote it wrote what this version can read.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from harness.schema.header import Header

WIDEST = 1024  # positions of a verify block


def defects(header: Header) -> Iterator[str]:
    """One text for each value that no reader could use."""
    if header.started_at and not _is_time(header.started_at):
        yield f"started_at {header.started_at[:40]!r} is no time with its zone"
    for name, checks in CHECKS.items():
        table = getattr(header, name)
        for key, (fits, wanted) in checks.items():
            if table.get(key) is not None and not fits(table[key]):
                yield f"{name}.{key} is {str(table[key])[:40]!r}, not {wanted}"


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_width(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= WIDEST


Check = tuple[Callable[[Any], bool], str]
NUMBER: Check = (_is_number, "a number")
TABLE: Check = (lambda value: isinstance(value, dict), "a table")
CHECKS: Mapping[str, Mapping[str, Check]] = {
    "attestation": {"window": (_is_width, f"a whole number from 1 to {WIDEST}")},
    "machine": {
        **dict.fromkeys(("own_cpu", "other_cpu", "steal", "seconds", "cores", "gpu_others"), NUMBER),
        "load": (lambda value: isinstance(value, list) and all(map(_is_number, value)), "a list of numbers"),
        "gpu": (lambda value: isinstance(value, list) and all(isinstance(v, dict) for v in value), "a list of tables"),
    },
    "provenance": {"contract": TABLE, "recipe": TABLE},
}

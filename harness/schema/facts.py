"""What is known of cells, and where two of them differ: judged by the table of `harness.schema.comparable` alone."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.schema.comparable import ATTESTED, CELL, ENV, FIELDS, UNKNOWN, Role, shown


@dataclass(frozen=True, kw_only=True)
class Unlike:
    """Two cells that may not stand side by side: both values of ``field``, each with its owner (a file, a cell)."""

    field: str
    value: Any
    owner: str
    other: Any
    other_owner: str

    def __str__(self) -> str:
        values = f"{shown(self.field)} is {self.value!r} in {self.owner} and {self.other!r} in {self.other_owner}"
        return f"unlike cells: {values}"


def judged(line: Mapping[str, Any]) -> dict[str, Any]:
    """What is judged in a line of the store's frame of cells, flat and hashable: NaN and absent are None."""
    attested = line.get("attestation")
    keys = attested if isinstance(attested, Mapping) else {}
    flat = {**line, **{ATTESTED + str(k): v for k, v in keys.items()}}
    return {k: _plain(v) for k, v in flat.items() if FIELDS.get(k, UNKNOWN).role is not Role.SHOWN}


def unlike(lines: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Unlike]:
    """Every two of ``lines`` (owner, `judged`) that differ in a field in which they must agree; the first owner stays.

    A line with fields of `CELL` alone is a planned cell, of which nothing else is known.
    """
    known = [(owner, found) for owner, found in lines]
    extra = {k for _, f in known for k in f if k.startswith((ENV, ATTESTED)) and k not in FIELDS}
    every = {**FIELDS, **dict.fromkeys(sorted(extra), UNKNOWN)}
    rules = {k: e for k, e in every.items() if e.role in (Role.COMPARE, Role.MERGE)}
    first: dict[tuple[Any, ...], tuple[Any, str]] = {}
    for owner, found in known:
        whole = "prompts_digest" in found
        for field, entry in rules.items():
            if whole or field in CELL:
                group = (field, *(found[name] for name in entry.among.value))
                value, before = first.setdefault(group, (found.get(field), owner))
                if value != found.get(field):
                    yield Unlike(field=field, value=value, owner=before, other=found.get(field), other_owner=owner)


def between(
    first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]], fields: Iterable[str]
) -> list[tuple[str, str, str, str]]:
    """(field, cells, value of the first run, of the second) where two runs' `judged` lines differ.

    Each pair of values comes once: ``cells`` names the first of the groups (`Among`) that both runs have, and is empty
    for a whole run.
    """
    sides = list(first), list(second)
    found: dict[tuple[str, str, str], str] = {}
    for field in fields:
        names = FIELDS[field].among.value
        old, new = (_grouped(side, field, names) for side in sides)
        for group in (g for g in old if g in new and old[g] != new[g]):
            a, b = (", ".join(sorted(map(str, side[group]))) for side in (old, new))
            found.setdefault((field, a, b), " ".join(str(part) for part in group if part != ""))
    return [(field, cells, a, b) for (field, a, b), cells in found.items()]


def _grouped(side: Iterable[Mapping[str, Any]], field: str, names: tuple[str, ...]) -> dict[tuple[Any, ...], set[Any]]:
    found: dict[tuple[Any, ...], set[Any]] = {}
    for line in side:
        found.setdefault(tuple(line[n] for n in names), set()).add(line.get(field))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, default=str)
    if isinstance(value, list | tuple):
        return tuple(_plain(v) for v in value)
    return value.item() if hasattr(value, "item") else value

"""What a run was to measure and has no number for: cells that failed, that were never run, and arms with fewer seeds.

An average over fewer cells than planned is another number, so it says what it lacks. A setting of which a seed is
wholly absent is a hole (`holes`); one that lacks a repeat keeps its number, with a caution (`gaps`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.schema.cell import Cell
from harness.schema.header import Outcome
from harness.stats.setting import Setting

MISSING = "missing"  # beside the outcomes of `header.Outcome`: planned, and no file
SHOWN = 3  # absent cells that a caution spells out


@dataclass(frozen=True, kw_only=True)
class Absent:
    """One planned or tried cell without a number."""

    setting: Setting
    seed: int
    repeat: int
    replica: int
    outcome: str  # `MISSING`, or how it failed
    reason: str = ""

    @property
    def why(self) -> str:
        """``timeout: no answer in 600 s``, or ``not run yet``."""
        return "not run yet" if self.outcome == MISSING else f"{self.outcome}: {self.reason}".removesuffix(": ")

    def __str__(self) -> str:
        closing = " closing" if self.replica else ""
        return f"seed {self.seed} repeat {self.repeat}{closing}: {self.why}"


def setting_of(cell: Any, category: str = "") -> Setting:
    """Where a cell's number stands; ``cell`` has `harness.schema.cell.Cell`'s fields."""
    return Setting(
        target=cell.target,
        arm=cell.arm,
        benchmark=cell.prompt_set,
        tier=cell.tier,
        temperature=cell.temperature,
        concurrency=cell.concurrency,
        category=category,
    )


def absent(cells: pd.DataFrame, planned: Iterable[Cell]) -> list[Absent]:
    """Every failed cell, then every planned one without a file."""
    failed = [_absent(c, c.outcome, c.reason) for c in cells[cells.outcome != Outcome.OK].itertuples()]
    known = set(cells.cell)
    return failed + [_absent(c, MISSING) for c in planned if c.id not in known]


def _absent(cell: Any, outcome: str, reason: str = "") -> Absent:
    return Absent(
        setting=setting_of(cell),
        seed=int(cell.seed),
        repeat=int(cell.repeat),
        replica=int(cell.replica),
        outcome=str(outcome),
        reason=str(reason),
    )


def seeds_of(cells: pd.DataFrame) -> dict[Setting, set[int]]:
    """Seeds with an ok cell, by setting."""
    found: dict[Setting, set[int]] = defaultdict(set)
    for cell in cells[cells.outcome == Outcome.OK].itertuples():
        found[setting_of(cell)].add(int(cell.seed))
    return found


def holes(lacking: Sequence[Absent], seeds: Mapping[Setting, set[int]]) -> dict[Setting, str]:
    """Settings of which a seed has no ok cell, and why."""
    found: dict[Setting, dict[int, str]] = defaultdict(dict)
    for one in lacking:
        if one.seed not in seeds.get(one.setting, ()):
            found[one.setting].setdefault(one.seed, f"seed {one.seed}: {one.why}")
    return {setting: "; ".join(why for _, why in sorted(reasons.items())) for setting, reasons in found.items()}


def gaps(lacking: Sequence[Absent], seeds: Mapping[Setting, set[int]]) -> dict[Setting, tuple[str, ...]]:
    """Cautions of the settings that have a number: cells of their own or of their AR that are not in it, odd seeds."""
    missing: dict[Setting, list[Absent]] = defaultdict(list)
    for one in lacking:
        missing[one.setting].append(one)
    everywhere: dict[Setting, set[int]] = defaultdict(set)
    for setting, own in seeds.items():
        everywhere[setting.of("")] |= own
    found = {
        setting: (*_own(setting, missing), *_odd(own, everywhere[setting.of("")])) for setting, own in seeds.items()
    }
    return {setting: cautions for setting, cautions in found.items() if cautions}


def _own(setting: Setting, missing: Mapping[Setting, Sequence[Absent]]) -> list[str]:
    said = []
    for arm in dict.fromkeys((setting.arm, "ar")):
        if gone := missing.get(setting.of(arm), ()):
            of = "AR cells, which speedups are taken over" if arm == "ar" != setting.arm else "planned cells"
            said.append(f"without {len(gone)} {of}: {_some(gone)}")
    return said


def _odd(own: set[int], everywhere: set[int]) -> list[str]:
    if own == everywhere:
        return []
    return [f"mean over {_seeds(own)} alone, beside arms with {_seeds(everywhere)}"]


def _seeds(seeds: set[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, sorted(seeds)))}"


def _some(found: Sequence[Absent]) -> str:
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "; ".join([*map(str, found[:SHOWN]), *more])


def summary(lacking: Sequence[Absent], planned: int) -> tuple[str, ...]:
    """One line for all of them, by target, arm and reason; empty if nothing is absent."""
    if not lacking:
        return ()
    counts: dict[tuple[str, str], list[Absent]] = defaultdict(list)
    for one in lacking:
        counts[f"{one.setting.target}/{one.setting.arm}", one.outcome].append(one)
    parts = [f"{arm} {len(found)} {outcome}{_sets(found)}" for (arm, outcome), found in counts.items()]
    return (f"{len(lacking)} of {planned} planned cells have no number: {'; '.join(parts)}",)


def _sets(found: Sequence[Absent]) -> str:
    return f" ({', '.join(dict.fromkeys(f.setting.benchmark for f in found))})"

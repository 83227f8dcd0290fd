"""Two runs side by side: differences with intervals, and a verdict that says when there is none to give.

Numbers may be compared when they mean the same: `harness.schema.comparable` says what two runs must share, for
acceptance and for speed. What else differs (weights, versions, server arguments) is what one compares, and is named. A
verdict is *better* or *worse* when the whole interval of the paired difference lies beyond 1 % and the noise floor,
*equal* when it lies inside 1 %, *cannot tell* between, *not comparable* with the reason otherwise. Against printed
numbers only acceptance can be judged, unpaired.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from harness.paper.published import NAME
from harness.schema import comparable
from harness.schema.facts import between, judged
from harness.schema.header import Outcome
from harness.stats import noise
from harness.stats.contrast import Told, relative, told
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Key, Results
from harness.stats.setting import AVERAGE, Setting, printed, table_order
from harness.tables.build import doubts, title_of
from harness.tables.table import Column, Table, TableCell, TableRow, words

Verdict = Literal["better", "worse", "equal", "cannot tell", "not comparable"]
Floors = dict[str, dict[tuple[str, float, int], Estimate]]
NOT: Verdict = "not comparable"
WORDS: dict[Told, Verdict] = {"more": "better", "less": "worse", "equal": "equal", "open": "cannot tell"}
Facts = dict[str, dict[str, Any]]  # cell id -> what is judged of it
PAIRED = "change: 100 (first / second - 1), paired by prompts where both ran the same; intervals are 95 %."
UNPAIRED = "; unpaired: the paper's weights and prompt wording are not known"
QUANTITIES = ("tau", "throughput", "speedup")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """``change`` is in per cent of the second run; ``reason`` explains the verdict."""

    setting: Setting
    quantity: str
    first: Estimate | Missing
    second: Estimate | Missing
    change: Estimate | Missing
    verdict: Verdict
    reason: str


def compare(first: Results, second: Results) -> list[Difference]:
    """Every setting, whole benchmarks and tiers, that both runs planned, in table order."""
    settings = {s for s in first.settings() if not s.category} & set(second.settings())
    floors = {q: noise.floors(first, q) | noise.floors(second, q) for q in ("tau", "throughput")}
    facts = facts_of(first), facts_of(second)
    return [
        _difference(first, second, (setting, quantity), floors, facts)
        for setting in sorted(settings, key=table_order)
        for quantity in QUANTITIES
        if any((setting, quantity) in r.values for r in (first, second))
        and (setting.arm, quantity) != ("ar", "speedup")
    ]


def facts_of(results: Results) -> Facts:
    """What decides whether numbers mean the same, of every ok cell; empty for printed numbers."""
    cells = results.cells
    if cells is None:
        return {}
    lines = cells[cells.outcome == Outcome.OK].to_dict("records")
    return {line["cell"]: judged({str(k): v for k, v in line.items()}) for line in lines}


def _difference(first: Results, second: Results, key: Key, floors: Floors, facts: tuple[Facts, Facts]) -> Difference:
    setting, quantity = key
    a, b, change = first.get(*key), second.get(*key), relative(first, key, second, key)
    if isinstance(change, Missing):
        owner = first if isinstance(a, Missing) else second
        verdict, reason = NOT, f"{owner.name}: {change.reason}"
    elif why := unlike(first, second, key, facts):
        verdict, reason = NOT, why
    else:
        floor = noise.floor_of(floors["tau" if quantity == "tau" else "throughput"], setting)
        found, reason = told(change, floor.value if isinstance(floor, Estimate) else 0.0)
        verdict = WORDS[found]
        reason += UNPAIRED if NAME in (first.name, second.name) else ""
    return Difference(
        setting=setting, quantity=quantity, first=a, second=b, change=change, verdict=verdict, reason=reason
    )


def unlike(first: Results, second: Results, key: Key, facts: tuple[Facts, Facts]) -> str:
    """Why the two numbers do not mean the same; empty if they do."""
    setting, quantity = key
    sets = [r.benchmarks(setting.target) for r in (first, second)]
    if setting.benchmark == AVERAGE and sets[0] != sets[1]:
        return f"averages over {', '.join(sets[0])} and over {', '.join(sets[1])}"
    if {} in facts:
        return "" if quantity == "tau" else _unlike_device(first, second, setting, facts)
    for name in comparable.compared(speed=quantity != "tau"):
        a, b = (_values(r, setting, f, name) for r, f in zip((first, second), facts, strict=True))
        if a != b:
            return f"{comparable.shown(name)}: {a} against {b}"
    return ""


def _unlike_device(first: Results, second: Results, setting: Setting, facts: tuple[Facts, Facts]) -> str:
    """The paper's device against a measured one's."""
    measured = [(r, f) for r, f in zip((first, second), facts, strict=True) if f]
    devices = [_values(r, setting, f, "env_device_name") for r, f in measured]
    return next((f"device: {d} against the paper's NVIDIA H100" for d in devices if "H100" not in d), "")


def _values(results: Results, setting: Setting, facts: Facts, name: str) -> str:
    """Distinct values of a field over a setting's cells."""
    found = {facts[cell].get(name) for cell in results.sources[setting]}
    return ", ".join(sorted("not recorded" if value is None else str(value) for value in found))


def as_table(first: Results, second: Results, differences: list[Difference], quantity: str) -> Table:
    """One quantity's differences, a section per place, a row per arm."""
    decimals = {"tau": 3, "throughput": 1, "speedup": 3}[quantity]
    columns = (
        Column(name=first.name, decimals=decimals),
        Column(name=second.name, decimals=decimals),
        Column(name="change, %"),
        Column(name="verdict"),
        Column(name="why"),
    )
    rows = tuple(_row(first, second, d) for d in differences if d.quantity == quantity)
    title = f"{quantity}: {first.name} against {second.name}"
    alone = filter(None, (_alone(first, second), _alone(second, first)))
    notes = (PAIRED, *alone, *differs(facts_of(first), facts_of(second)), *_doubts(first), *_doubts(second))
    return Table(name=quantity, title=title, stub="Arm", columns=columns, rows=rows, notes=notes, intervals=True)


def differs(first: Facts, second: Facts) -> list[str]:
    """What one compares: fields that two runs need not share, and do not."""
    if not first or not second:
        return []
    found = between(first.values(), second.values(), comparable.merged())
    return [f"differs: {comparable.shown(f)}{f' of {of}' if of else ''}: {a} against {b}" for f, of, a, b in found]


def _doubts(run: Results) -> Iterator[str]:
    """What a run lacks, and which of its arms are unaudited."""
    yield from (f"{run.name}: {note}" for note in doubts(run))


def _alone(run: Results, other: Results) -> str:
    """What stands in one run only."""
    alone = {s for s in run.settings() if not s.category} - set(other.settings())
    names = ", ".join(dict.fromkeys(f"{s.target}/{s.benchmark}" for s in sorted(alone, key=table_order)))
    return f"not comparable, only in {run.name}: {len(alone)} settings of {names}" if alone else ""


def _row(first: Results, second: Results, d: Difference) -> TableRow:
    s = d.setting
    marked = first if s.arm in first.unaudited else second  # a dagger of either run counts
    place = f"{printed(s.benchmark)} {s.tier}".strip()
    numbers = (TableCell(content=e, setting=s, quantity=d.quantity) for e in (d.first, d.second, d.change))
    return TableRow(
        section=f"{s.target}, {place}, T = {s.temperature:g}, c = {s.concurrency}",
        label=title_of(marked, s.arm),
        cells=(*numbers, *words(d.verdict, d.reason)),
    )

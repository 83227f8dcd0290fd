"""Two runs side by side: differences with intervals, and a verdict that says when there is none to give.

Numbers may be compared when they mean the same: same prompts and sampling, and for speed the same device. Weights,
SGLang version and server arguments may differ; they are what one compares. A verdict is *better* or *worse* when the
whole interval of the paired difference lies beyond the band (1 % or the noise floor, whichever is wider), *tie* when it
does not, *not comparable* with the reason otherwise. Against printed numbers only acceptance can be judged, unpaired.
"""

from dataclasses import dataclass
from typing import Literal

from harness.paper.published import NAME
from harness.stats import noise
from harness.stats.contrast import relative
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Key, Results
from harness.stats.setting import AVERAGE, Setting, printed, table_order
from harness.stats.ties import BAND
from harness.tables.build import title_of
from harness.tables.table import Cell, Column, Row, Table, words

Verdict = Literal["better", "worse", "tie", "not comparable"]
Floors = dict[str, dict[tuple[str, float, int], Estimate]]
NOT: Verdict = "not comparable"
Facts = dict[str, dict[str, str]]
PAIRED = "change: 100 (first / second - 1), paired by prompts where both ran the same; intervals are 95 %."
UNPAIRED = "; unpaired: the paper's weights and prompt wording are not known"
QUANTITIES = ("tau", "throughput", "speedup")
PROMPT_KEYS = ("prompt_version", "prompts", "max_new_tokens", "ignore_eos", "top_p", "top_k", "render")
DEVICE_KEYS = ("env_device_name", "env_threads", "dtype")  # tokens per second mean nothing across these


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
    facts = _facts(first), _facts(second)
    return [
        _difference(first, second, (setting, quantity), floors, facts)
        for setting in sorted(settings, key=table_order)
        for quantity in QUANTITIES
        if any((setting, quantity) in r.values for r in (first, second))
        and (setting.arm, quantity) != ("ar", "speedup")
    ]


def _facts(results: Results) -> Facts:
    """What decides whether numbers mean the same: column -> cell id -> value as text."""
    cells = results.cells
    if cells is None:
        return {}
    keys = [key for key in (*PROMPT_KEYS, *DEVICE_KEYS) if key in cells]
    return {key: dict(zip(cells.cell, map(str, cells[key]), strict=True)) for key in keys}


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
        verdict, reason = judge(change, max(BAND, floor.value if isinstance(floor, Estimate) else 0.0))
        reason += UNPAIRED if NAME in (first.name, second.name) else ""
    return Difference(
        setting=setting, quantity=quantity, first=a, second=b, change=change, verdict=verdict, reason=reason
    )


def judge(change: Estimate, band: float) -> tuple[Verdict, str]:
    """Verdict on a change in per cent under a relative band; without an interval the value alone decides."""
    width = 100 * band
    if change.low is None or change.high is None:
        low, high, doubt = change.value, change.value, "no interval"
    else:
        low, high, doubt = change.low, change.high, f"band {width:.2g} %"
    if low > width:
        return "better", doubt
    if high < -width:
        return "worse", doubt
    if -width <= low and high <= width:
        return "tie", f"equal: {doubt}"
    return "tie", f"cannot be told apart: the interval reaches into the band, {width:.2g} %"


def unlike(first: Results, second: Results, key: Key, facts: tuple[Facts, Facts]) -> str:
    """Why the two numbers do not mean the same; empty if they do."""
    setting, quantity = key
    sets = [r.benchmarks(setting.target) for r in (first, second)]
    if setting.benchmark == AVERAGE and sets[0] != sets[1]:
        return f"averages over {', '.join(sets[0])} and over {', '.join(sets[1])}"
    if {} in facts:
        return "" if quantity == "tau" else _unlike_device(first, second, setting, facts)
    for name in PROMPT_KEYS if quantity == "tau" else PROMPT_KEYS + DEVICE_KEYS:
        a, b = (_values(r, setting, f, name) for r, f in zip((first, second), facts, strict=True))
        if a != b:
            return f"{name.removeprefix('env_')}: {a} against {b}"
    return ""


def _unlike_device(first: Results, second: Results, setting: Setting, facts: tuple[Facts, Facts]) -> str:
    """The paper's device against a measured one's."""
    measured = [(r, f) for r, f in zip((first, second), facts, strict=True) if f]
    devices = [_values(r, setting, f, "env_device_name") for r, f in measured]
    return next((f"device: {d} against the paper's NVIDIA H100" for d in devices if "H100" not in d), "")


def _values(results: Results, setting: Setting, facts: Facts, name: str) -> str:
    """Distinct values of a column over a setting's cells."""
    if name not in facts:
        return "not recorded"
    return ", ".join(sorted({facts[name][cell] for cell in results.sources[setting]}))


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
    rows = tuple(_row(first, d) for d in differences if d.quantity == quantity)
    title = f"{quantity}: {first.name} against {second.name}"
    notes = (PAIRED, *filter(None, (_alone(first, second), _alone(second, first))))
    return Table(name=quantity, title=title, stub="Arm", columns=columns, rows=rows, notes=notes, intervals=True)


def _alone(run: Results, other: Results) -> str:
    """What stands in one run only."""
    alone = {s for s in run.settings() if not s.category} - set(other.settings())
    names = ", ".join(dict.fromkeys(f"{s.target}/{s.benchmark}" for s in sorted(alone, key=table_order)))
    return f"not comparable, only in {run.name}: {len(alone)} settings of {names}" if alone else ""


def _row(first: Results, d: Difference) -> Row:
    s = d.setting
    place = f"{printed(s.benchmark)} {s.tier}".strip()
    numbers = (Cell(content=e, setting=s, quantity=d.quantity) for e in (d.first, d.second, d.change))
    return Row(
        section=f"{s.target}, {place}, T = {s.temperature:g}, c = {s.concurrency}",
        label=title_of(first, s.arm),
        cells=(*numbers, *words(d.verdict, d.reason)),
    )

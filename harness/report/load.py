"""What concurrency does to a run: speedups side by side, and how far tau moves."""

from collections.abc import Iterator

from harness.report.sentences import title
from harness.stats.estimate import Estimate, Missing, from_draws, mean
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, TIERS, Setting, printed
from harness.tables.table import Column, Table, TableCell, TableRow


def tables(results: Results) -> list[Table]:
    """One a target and temperature that was measured at several concurrencies; mean speedup over what all have."""
    return [t for target in results.targets() for t in _of_target(results, target)]


def _of_target(results: Results, target: str) -> Iterator[Table]:
    own = [s for s in results.settings() if s.target == target and not s.category and s.benchmark != AVERAGE]
    for t in sorted({s.temperature for s in own}):
        here = [s for s in own if s.temperature == t]
        levels = _levels(here)
        shared = _shared(here, levels)
        if len(levels) < 2 or not shared:
            continue
        arms = [a for a in results.arms(target) if a != "ar" and any(s.arm == a and _planned(results, s) for s in here)]
        rows = tuple(
            TableRow(
                label=title(a),
                cells=tuple(TableCell(content=_speedup(results, target, a, t, c, shared)) for c in levels),
            )
            for a in arms
        )
        names = ", ".join(dict.fromkeys(f"{printed(b)} {TIERS.get(tier, tier)}".strip() for b, tier in shared))
        yield Table(
            name=f"load-{target}-t{t:g}",
            title=f"{target}, T = {t:g}: speedup over AR by concurrency, mean of {names}",
            stub="Arm",
            columns=tuple(Column(name=str(c), group="concurrency") for c in levels),
            rows=rows,
            intervals=True,
        )


def _planned(results: Results, setting: Setting) -> bool:
    return setting in results.holes or (setting, "speedup") in results.values


def _levels(settings: list[Setting]) -> list[int]:
    """Concurrencies of the sets that ran at several."""
    by_set: dict[tuple[str, str], set[int]] = {}
    for s in settings:
        by_set.setdefault((s.benchmark, s.tier), set()).add(s.concurrency)
    return sorted(set().union(*(c for c in by_set.values() if len(c) > 1)))


def _shared(settings: list[Setting], levels: list[int]) -> list[tuple[str, str]]:
    """Sets (and tiers) that were measured at every level."""
    found = dict.fromkeys((s.benchmark, s.tier) for s in settings)
    return [b for b in found if {s.concurrency for s in settings if (s.benchmark, s.tier) == b} >= set(levels)]


def _speedup(
    results: Results, target: str, arm: str, t: float, c: int, shared: list[tuple[str, str]]
) -> Estimate | Missing:
    settings = [
        Setting(target=target, arm=arm, benchmark=b, tier=tier, temperature=t, concurrency=c) for b, tier in shared
    ]
    found = [results.get(s, "speedup") for s in settings]
    if lacking := next((e for e in found if isinstance(e, Missing)), None):
        return lacking
    numbers = [e for e in found if isinstance(e, Estimate)]
    n = sum(e.n for e in numbers)
    draws = [results.draws[s, "speedup"] for s in settings if (s, "speedup") in results.draws]
    if len(draws) == len(settings):
        return from_draws(mean(draws), n, f"mean over {len(settings)} sets")
    value = sum(e.value for e in numbers) / len(numbers)
    return Estimate(value, None, None, n, f"mean over {len(settings)} printed numbers")


def drift(results: Results) -> list[str]:
    """``tau over concurrency``: how far each arm's tau moves from its value at the lowest concurrency, in sentences."""
    lines = []
    for target in results.targets():
        own = [s for s in results.settings() if s.target == target and not s.category and s.benchmark != AVERAGE]
        for t in sorted({s.temperature for s in own}):
            here = [s for s in own if s.temperature == t and s.arm != "ar"]
            if len({s.concurrency for s in here}) > 1:
                lines.append(f"{target}, T = {t:g}: {_drift(results, here)}")
    return lines


def _drift(results: Results, settings: list[Setting]) -> str:
    moved: dict[str, list[float]] = {}
    reason = ""
    for s in settings:
        lowest = min((o for o in settings if _same(o, s)), key=lambda o: o.concurrency)
        if s == lowest:
            continue
        a, b = results.get(s, "tau"), results.get(lowest, "tau")
        if isinstance(a, Missing) or isinstance(b, Missing):
            reason = reason or (a.reason if isinstance(a, Missing) else getattr(b, "reason", ""))
        else:
            moved.setdefault(s.arm, []).append(100 * (a.value / b.value - 1))
    if not moved:
        return f"how far tau moves over concurrency is not known ({reason})."
    parts = [f"{title(arm)} {_span(v)} %" for arm, v in moved.items()]
    everything = [x for v in moved.values() for x in v]
    lacking = f" Not everywhere: {reason}." if reason else ""
    return (
        f"tau moves {_span(everything)} % between the lowest and higher concurrency "
        f"({', '.join(parts)}; values, without intervals).{lacking}"
    )


def _same(a: Setting, b: Setting) -> bool:
    """The same arm on the same prompts."""
    return (a.arm, a.benchmark, a.tier) == (b.arm, b.benchmark, b.tier)


def _span(values: list[float]) -> str:
    low, high = (f"{f(values):+z.1f}" for f in (min, max))
    return low if low == high else f"{low} to {high}"

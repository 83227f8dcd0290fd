"""Tables 1, 2, 3 and 17: speedups, concurrency and head cost, in the paper's layout."""

from harness.stats.results import Results
from harness.stats.setting import AVERAGE, TIERS, Setting, printed, table_order
from harness.tables.build import (
    Line,
    Slot,
    arms_with,
    benchmark_lines,
    build,
    lowest_concurrency,
    temperatures,
    title_of,
    whole,
)
from harness.tables.table import Column, Table
from sglang_specbench.arms import word_of

VARIANTS = ("-argmax", "-exact")  # they stand in Tables 7, 16 and variants


def table1(results: Results) -> Table:
    """Speedup over AR per benchmark, with AR's throughput."""
    targets = results.targets()
    columns = [("ar", "AR tok/s", "throughput", 0)]
    columns += [(arm, title_of(results, arm), "speedup", 2) for arm in main_arms(results, "speedup")]
    slots = [
        Slot(
            column=Column(group=title, name=target, decimals=decimals),
            quantity=quantity,
            where={"arm": arm, "target": target},
            contest=target if quantity == "speedup" else None,
        )
        for arm, title, quantity, decimals in columns
        for target in targets
    ]
    lines = benchmark_lines(results, None, temperatures(results, whole))
    return build(results, "1", "Table 1. Speedup over autoregressive decoding", "Benchmark", lines, slots)


def main_arms(results: Results, quantity: str) -> list[str]:
    """Arms of the one-stream tables that propose as they are meant to."""
    c = lowest_concurrency(results)
    found = arms_with(results, quantity, lambda s: whole(s) and s.concurrency == c and s.benchmark != AVERAGE)
    return [arm for arm in found if not is_variant(arm)]


def is_variant(arm: str) -> bool:
    """Whether it is another checkpoint, proposal or decode rule of an arm: those have tables of their own."""
    return bool(word_of(arm)) or arm.endswith(VARIANTS)


def table2(results: Results) -> Table:
    """Speedup at concurrency 1 to 32, per input length and entropy tier."""
    found = _loads(results)
    tiers = list(dict.fromkeys(s.tier for s in found))
    slots = [
        Slot(
            column=Column(group=title_of(results, arm) if tier else "", name=TIERS.get(tier) or title_of(results, arm)),
            quantity="speedup",
            where={"arm": arm, "tier": tier},
            contest=tier,
        )
        for arm in _load_arms(found, results)
        for tier in tiers
    ]
    lines = list(dict.fromkeys(_load_line(s, "") for s in found))
    return build(results, "2", "Table 2. Speedup against concurrency", "Concurrency", lines, slots)


def table17(results: Results) -> Table:
    """Acceptance length and throughput behind Table 2."""
    found = _loads(results)
    lines = list(dict.fromkeys(_load_line(s, s.tier) for s in found))
    slots = pair_slots(results, _load_arms(found, results))
    title = "Table 17. Acceptance length and throughput behind Table 2"
    return build(results, "17", title, "Concurrency", lines, slots)


def _loads(results: Results) -> list[Setting]:
    """Settings of the concurrency tables: tiered sets, else whatever ran at several concurrencies; in table order."""
    found = [s for s in results.settings() if s.tier and not s.category and s.seed is None]
    if not found:
        c = lowest_concurrency(results)
        own = [s for s in results.settings() if whole(s)]
        wide = {(s.target, s.benchmark, s.temperature) for s in own if s.concurrency != c}
        found = [s for s in own if (s.target, s.benchmark, s.temperature) in wide]
    return sorted((s for s in found if s.benchmark != AVERAGE), key=_load_order)


def _load_order(setting: Setting) -> tuple[object, ...]:
    """Input length before tier before concurrency, as in the paper."""
    target, temperature, concurrency, *rest = table_order(setting)
    return (target, rest[0], temperature, *rest[1:], concurrency)


def _load_arms(found: list[Setting], results: Results) -> list[str]:
    present = {s.arm for s in found} - {"ar"}
    return [arm for arm in results.arms() if arm in present and not is_variant(arm)]


def _load_line(setting: Setting, tier: str) -> Line:
    section = f"{setting.target}, {printed(setting.benchmark)}, T = {setting.temperature:g}"
    place = Setting(
        target=setting.target,
        arm="",
        benchmark=setting.benchmark,
        temperature=setting.temperature,
        tier=tier,
        concurrency=setting.concurrency,
    )
    return f"{section}, {TIERS.get(tier, tier)}" if tier else section, str(setting.concurrency), place


def pair_slots(results: Results, arms: list[str], ar: bool = False) -> list[Slot]:
    """Columns of tau and throughput per arm, AR's throughput first if asked for."""
    slots = [Slot(column=Column(group="AR", name="tok/s", decimals=0), quantity="throughput", where={"arm": "ar"})] * ar
    for arm in arms:
        group = title_of(results, arm)
        tau, rate = Column(group=group, name="τ"), Column(group=group, name="tok/s", decimals=0)
        slots.append(Slot(column=tau, quantity="tau", where={"arm": arm}, contest="tau"))
        slots.append(Slot(column=rate, quantity="throughput", where={"arm": arm}, contest="throughput"))
    return slots


def table3(results: Results) -> Table:
    """Head cost by subtraction, and its share of the block; of a measured run also without prefill."""
    columns = [("head, ms", "head_ms", 3), ("% of block", "head_share_pct", 1)]
    if results.cells is not None:
        columns.insert(1, ("decode only, ms", "head_decode_ms", 3))
    arms = [a for a in arms_with(results, "head_ms", lambda s: s.benchmark == AVERAGE) if a != "dflash"]
    slots = [
        Slot(column=Column(group=target, name=name, decimals=decimals), quantity=quantity, where={"target": target})
        for target in results.targets()
        for name, quantity, decimals in columns
    ]
    lines = [
        ("", title_of(results, arm), Setting(target="", arm=arm, benchmark=AVERAGE, temperature=0.0)) for arm in arms
    ]
    return build(results, "3", "Table 3. Cost of the head", "Arm", lines, slots)

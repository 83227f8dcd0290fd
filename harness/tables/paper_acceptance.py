"""Tables 5 to 11 in the paper's layout: acceptance length and throughput by benchmark, proposal, category and seed."""

from harness.stats.results import Results
from harness.stats.setting import ARM_ORDER, AVERAGE, Setting, printed
from harness.tables.build import Line, Slot, arms_with, benchmark_lines, build, temperatures, title_of, whole
from harness.tables.paper_speed import main_arms, pair_slots
from harness.tables.table import Column, Table
from sglang_specbench.arms import ARMS

# SPEED-Bench's categories in the paper's order and spelling; others follow as they are
PRINTED = (
    *("Math", "Coding", "Multilingual", "STEM", "Humanities", "Reasoning"),
    *("RAG", "Writing", "QA", "Summarization", "Roleplay"),
)
CATEGORIES = {name.lower(): name for name in PRINTED}


def _target(results: Results, place: int) -> str:
    """The run's first or second target, as the paper's 8B and 4B; "" if there is none."""
    return (*results.targets(), "", "")[place]


def _by_benchmark(results: Results, number: str, place: int) -> Table:
    target = _target(results, place)
    lines = benchmark_lines(results, target, temperatures(results, whole)) if target else []
    title = f"Table {number}. Acceptance length and throughput, {target or 'second target'}"
    return build(results, number, title, "Benchmark", lines, pair_slots(results, main_arms(results, "tau"), ar=True))


def table5(results: Results) -> Table:
    """Acceptance length and throughput of the first target."""
    return _by_benchmark(results, "5", 0)


def table6(results: Results) -> Table:
    """Acceptance length and throughput of the second target."""
    return _by_benchmark(results, "6", 1)


def table7(results: Results) -> Table:
    """Every arm with an argmax proposal, sampling target."""
    sampled = arms_with(results, "tau", lambda s: whole(s) and s.temperature > 0 and s.benchmark != AVERAGE)
    argmax = [a for a in sampled if a in ARMS and ARMS[a].proposal(1.0) == "argmax" and not a.endswith("-exact")]
    arms = sorted(argmax, key=lambda a: [*ARM_ORDER, a].index(a.removesuffix("-argmax")))
    lines = [
        (target, label, place)
        for target in results.targets()
        for _, label, place in benchmark_lines(results, target, [t for t in temperatures(results, whole) if t > 0])
    ]
    title = "Table 7. Acceptance length and throughput with argmax proposals, sampling"
    return build(results, "7", title, "Benchmark", lines, pair_slots(results, arms, ar=True))


def _by_category(results: Results, number: str, place: int) -> Table:
    target = _target(results, place)
    split = [s for s in results.settings() if s.category and s.target == target]
    names = {s.category for s in split}
    order = [c for c in CATEGORIES if c in names] + sorted(names - set(CATEGORIES))
    places = sorted({(s.benchmark, s.temperature, s.concurrency) for s in split if not s.tier})
    lines: list[Line] = [
        (
            f"{printed(b)}, T = {t:g}" + (f", c = {c}" if c > 1 else ""),
            CATEGORIES.get(category, category),
            Setting(target=target, arm="", benchmark=b, temperature=t, concurrency=c, category=category),
        )
        for b, t, c in places
        for category in order
        if any((s.benchmark, s.category) == (b, category) for s in split)
    ]
    title = f"Table {number}. Acceptance length and throughput by category, {target or 'second target'}"
    return build(results, number, title, "Category", lines, pair_slots(results, main_arms(results, "tau")))


def table8(results: Results) -> Table:
    """Categories of the first target."""
    return _by_category(results, "8", 0)


def table9(results: Results) -> Table:
    """Categories of the second target."""
    return _by_category(results, "9", 1)


def _by_seed(results: Results, number: str, place: int) -> Table:
    target = _target(results, place)
    sampled = [t for t in temperatures(results, whole) if t > 0]
    lines = [line for line in benchmark_lines(results, target, sampled) if line[2].benchmark != AVERAGE]
    slots = [
        Slot(
            column=Column(group=title_of(results, arm), name=name, decimals=decimals),
            quantity=quantity,
            where={"arm": arm},
        )
        for arm in arms_with(results, "tau_sd", lambda s: s.target == target)
        if not arm.endswith("-argmax")
        for name, quantity, decimals in (
            ("τ", "tau", 2),
            ("± τ", "tau_sd", 2),
            ("tok/s", "throughput", 0),
            ("± tok/s", "throughput_sd", 1),
        )
    ]
    title = f"Table {number}. Mean and sample standard deviation over seeds, {target or 'second target'}"
    return build(results, number, title, "Benchmark", lines if target else [], slots)


def table10(results: Results) -> Table:
    """Seed spread of the first target."""
    return _by_seed(results, "10", 0)


def table11(results: Results) -> Table:
    """Seed spread of the second target."""
    return _by_seed(results, "11", 1)

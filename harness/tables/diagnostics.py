"""Tables that the paper has not: the tau ledger, survival, closure, the noise floor, ties, and what rounding hides."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.paper import consistency as oracle
from harness.stats import closure, noise
from harness.stats.acceptance import LEDGER
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting, printed, table_order
from harness.stats.ties import Place, count, places, printed_band
from harness.tables.build import Line, Slot, build, lowest_concurrency, method_notes, title_of, whole
from harness.tables.paper_speed import main_arms
from harness.tables.table import Column, Table, TableCell, TableRow, words
from sglang_specbench.arms import WINDOW

ROUNDING = "Printed numbers that the rounded tables give only within rounding"


def _lines(results: Results) -> list[Line]:
    """A section per place, a row per arm; AR has no blocks, an average no counts."""
    found = [s for s in results.settings() if s.arm != "ar" and not s.category and s.benchmark != AVERAGE]
    return [(_place(s), title_of(results, s.arm), s) for s in sorted(found, key=table_order)]


def _place(setting: Setting) -> str:
    name = f"{printed(setting.benchmark)} {setting.tier}".strip()
    return f"{setting.target}, {name}, T = {setting.temperature:g}, c = {setting.concurrency}"


def ledger(results: Results) -> Table:
    """Every estimator of the acceptance length from the same counts."""
    slots = [Slot(column=Column(name=name), quantity=name) for name in LEDGER]
    return replace(
        build(results, "ledger", "Acceptance length, every estimator", "Arm", _lines(results), slots), intervals=True
    )


def survival(results: Results) -> Table:
    """Share of blocks that accept slot i: not conditional, tau = 1 + sum."""
    widest = max((w for seen in results.windows.values() for w in seen), default=WINDOW)
    slots = [Slot(column=Column(name=str(i)), quantity=f"a{i}") for i in range(1, widest)]
    return build(results, "survival", "Survival of drafted slots", "Arm", _lines(results), slots)


def speed(results: Results) -> Table:
    """Throughput end to end and in the steady state, and block times."""
    columns = {"throughput": 1, "steady_throughput": 1, "block_ms": 3, "decode_block_ms": 3, "speedup": 2}
    slots = [Slot(column=Column(name=name, decimals=d), quantity=name) for name, d in columns.items()]
    return replace(build(results, "speed", "Speed, every estimator", "Arm", _lines(results), slots), intervals=True)


def closed(results: Results) -> Table:
    """Speedup against tau * t_AR / t_block, the rest attributed; per cents are 100 ln."""
    names = ["speedup", "predicted", "residual", *(f"residual_{f}" for f in closure.FACTORS), "residual_rest"]
    slots = [Slot(column=Column(name=name.removeprefix("residual_")), quantity=name) for name in names]
    return build(
        results, "closure", "Speedup against what tau and the block time predict", "Arm", _lines(results), slots
    )


def noise_floor(results: Results) -> Table:
    """Relative difference that 95 % of A/A pairs stay under, per cent."""
    found = {q: noise.floors(results, q) for q in ("throughput", "tau", "block_ms")}
    places = sorted({(s.target, s.temperature, s.concurrency) for s in results.settings()})
    rows = tuple(
        TableRow(
            section=target,
            label=f"T = {t:g}, c = {c}",
            cells=tuple(
                TableCell(content=_percent(floors.get((target, t, c))), quantity=q) for q, floors in found.items()
            ),
        )
        for target, t, c in places
    )
    columns = tuple(Column(name=f"{q}, %") for q in found)
    notes = tuple(method_notes([cell for row in rows for cell in row.cells]))
    title = "Measured noise floor between launches"
    return Table(name="noise", title=title, stub="Place", columns=columns, rows=rows, notes=notes, intervals=True)


def _percent(floor: Estimate | None) -> Estimate | Missing:
    if floor is None:
        return Missing("no A/A cells: run with repeats = 2 or more")
    low, high = (None if bound is None else 100 * bound for bound in (floor.low, floor.high))
    return Estimate(100 * floor.value, low, high, floor.n, floor.method)


def ties(results: Results) -> Table:
    """Wins, ties and trails of each arm against the best other one, under both bands."""
    bands = ("1 % band", "measured noise floor")
    columns = tuple(Column(group=g, name=n, decimals=0) for g in bands for n in ("wins", "ties", "trails"))
    rows = tuple(row for arm in main_arms(results, "throughput") for row in _tie_rows(results, arm))
    notes = ("One stream by throughput, concurrency by speedup; against the best of the other arms at each place.",)
    return Table(name="ties", title="Wins, ties and trails", stub="Where", columns=columns, rows=rows, notes=notes)


def _tie_rows(results: Results, arm: str) -> Iterator[TableRow]:
    c = lowest_concurrency(results)
    rivals = [a for a in main_arms(results, "throughput") if a.split("-")[0] != arm.split("-")[0]]
    own = [s for s in results.settings() if s.arm == arm and not s.category and s.benchmark != AVERAGE]
    stream = ("throughput", [s for s in own if whole(s) and s.concurrency == c])
    loaded = ("speedup", [s for s in own if s.tier or s.concurrency != c])
    parts = {"one stream": [stream], "concurrency": [loaded], "all": [stream, loaded]}
    floors = noise.floors(results, "throughput")
    for label, chosen in parts.items():
        if any(settings for _, settings in chosen):
            counts = [
                [places(results, settings, quantity, rivals, band) for quantity, settings in chosen]
                for band in (printed_band, lambda s: noise.floor_of(floors, s))
            ]
            yield TableRow(
                section=title_of(results, arm), label=label, cells=tuple(c for found in counts for c in _counts(found))
            )


def _counts(found: Sequence[tuple[list[Place], dict[Setting, str]]]) -> Iterator[TableCell]:
    judged = [place for places, _ in found for place in places]
    reasons = [why for _, open_ in found for why in open_.values()]
    for number in count(judged):
        content = Estimate(number, None, None, len(judged), "settings") if judged else Missing(reasons[0])
        yield TableCell(content=content)


def rounding(results: Results) -> Table:
    """Printed numbers that the rounded tables reproduce only within their rounding, and any that they contradict."""
    if results.cells is not None:
        return Table(name="rounding", title=ROUNDING, stub="", columns=(), rows=(), notes=("Only for the paper.",))
    rows = tuple(
        TableRow(
            section=check.quantity,
            label=str(check.setting),
            cells=(
                TableCell(content=check.printed, setting=check.setting, quantity=check.quantity),
                TableCell(content=check.derived, setting=check.setting, quantity=check.quantity),
                *words("within rounding" if check.agrees else "contradiction"),
            ),
        )
        for check in oracle.checks()
        if not check.exact
    )
    columns = (Column(name="printed", decimals=3), Column(name="derived", decimals=4), Column(name="verdict"))
    return Table(name="rounding", title=ROUNDING, stub="Number", columns=columns, rows=rows, intervals=True)

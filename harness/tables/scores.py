"""Wins, ties and trails split as the paper splits them: by temperature, proposal, target, load and category.

A place is one target, prompt set (tier, category), temperature and concurrency; an arm is set against the best of the
other arms there, under the 1 % band. ``fastest`` counts the places where it has the highest number, band or not.
At temperature 1 an arm competes as it is meant to propose (``sampled``: those that can, do), and once more among the
arms that propose by argmax.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting, printed
from harness.stats.ties import Place, count, places
from harness.tables.build import lowest_concurrency, title_of, whole
from harness.tables.paper_speed import VARIANTS, main_arms
from harness.tables.table import Column, Table, TableCell, TableRow
from sglang_specbench.arms import ARMS, word_of

Chosen = Callable[[Setting], bool]
COLUMNS = ("wins", "ties", "trails", "fastest", "places", "open")
NOTES = (
    "One stream and categories by throughput, load by speedup, against the best of the other arms at each place; ties "
    "are within 1 % of it. fastest: highest number, band or not; open: its number or a "
    "rival's is missing.",
    "sampled: each arm as it is meant to propose at T = 1 (argmax where it has nothing else); argmax: only arms and "
    "variants that propose by argmax.",
)


def scores(results: Results) -> Table:
    """A section per arm, a row per split that has a place."""
    rows = tuple(row for arm in main_arms(results, "throughput") for row in _rows(results, arm))
    columns = tuple(Column(name=name, decimals=0) for name in COLUMNS)
    title = "Wins, ties and trails, by temperature, proposal, target, load and category"
    return Table(name="scores", title=title, stub="Where", columns=columns, rows=rows, notes=NOTES)


def _rows(results: Results, arm: str) -> Iterator[TableRow]:
    for label, own, rivals, quantity, chosen in _splits(results, arm):
        settings = [s for s in results.settings() if s.arm == own and s.benchmark != AVERAGE and chosen(s)]
        whole_field = [s for s in settings if not any(_hole(results, s.of(rival)) for rival in rivals)]
        judged, _ = places(results, whole_field, quantity, rivals)
        if settings:
            cells = tuple(_cells(judged, len(settings) - len(judged)))
            yield TableRow(section=title_of(results, arm), label=label, cells=cells)


def _hole(results: Results, setting: Setting) -> bool:
    """Was planned and has no number: the place has no best other arm that one could know."""
    return replace(setting, category="") in results.holes


def _cells(judged: Sequence[Place], unjudged: int) -> Iterator[TableCell]:
    fastest = sum(place.lead > 0 for place in judged)
    for number in (*count(judged), fastest, len(judged), unjudged):
        yield TableCell(content=Estimate(number, None, None, len(judged), "places"))


def _splits(results: Results, arm: str) -> Iterator[tuple[str, str, list[str], str, Chosen]]:
    """Label, the arm or its variant, its rivals, the quantity, and which settings count."""
    c = lowest_concurrency(results)
    rivals = _rivals(main_arms(results, "throughput"), arm)
    for t in _temperatures(results):
        one = lambda s, t=t: whole(s) and s.concurrency == c and s.temperature == t
        yield f"T = {t:g}{_proposal(t, 'sampled')}", arm, rivals, "throughput", one
        for target in results.targets():
            own = lambda s, one=one, target=target: one(s) and s.target == target
            yield f"T = {t:g}{_proposal(t, 'sampled')}, {target}", arm, rivals, "throughput", own
        if t:
            able = [a for a in results.arms() if not word_of(a) and not a.endswith("-exact")]
            pool = [a for a in able if ARMS[a].proposal(t) == "argmax"]
            variant = next((a for a in pool if a in (f"{arm}-argmax", arm)), "")
            yield f"T = {t:g}{_proposal(t, 'argmax')}", variant, _rivals(pool, arm), "throughput", one
    for t in _temperatures(results):
        category = lambda s, t=t: bool(s.category) and s.concurrency == c and s.temperature == t
        yield f"categories, T = {t:g}", arm, rivals, "throughput", category
    yield "categories", arm, rivals, "throughput", lambda s: bool(s.category) and s.concurrency == c
    for benchmark in results.benchmarks(tiers=True):
        load = lambda s, b=benchmark: s.benchmark == b and bool(s.tier) and not s.category
        yield f"load, {printed(benchmark)}", arm, rivals, "speedup", load
    loaded = lambda s: not s.category and (bool(s.tier) or s.concurrency != c)
    yield "load", arm, rivals, "speedup", loaded


def _proposal(temperature: float, name: str) -> str:
    return f", {name}" if temperature else ""


def _rivals(arms: Sequence[str], arm: str) -> list[str]:
    """Arms of other families: an arm does not compete with its own variants."""
    return [a for a in arms if a.split("-")[0] != arm.split("-")[0]]


def _temperatures(results: Results) -> list[float]:
    return sorted({s.temperature for s in results.settings() if not s.arm.endswith(VARIANTS) and s.seed is None})

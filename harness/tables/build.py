"""The one way in which a table is filled: rows are settings, columns say what to change in them and what to look up.

Adds what every table must carry: marks of the best and of the tie band, the estimators behind its numbers, unaudited
arms, and the cautions of its cells.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.stats import block_width
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting, printed
from harness.stats.ties import BAND
from harness.tables.table import Column, Table, TableCell, TableRow, marks
from sglang_specbench.arms import ARMS, word_of

UNAUDITED = "\N{DAGGER}"
SPELT_OUT = 4  # settings with a gap that `doubts` names
BANDED = "Bold: best of the row. Underlined: within 1 % of it."
Line = tuple[str, str, Setting]  # section, label, where the row stands


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A column: ``where`` replaces fields of the row's setting; cells of one ``contest`` in a row compete for best."""

    column: Column
    quantity: str
    where: Mapping[str, Any] = field(default_factory=dict)
    contest: Hashable = None


def build(results: Results, name: str, title: str, stub: str, lines: Sequence[Line], slots: Sequence[Slot]) -> Table:
    """A table without lines or columns says so in a note."""
    rows = tuple(TableRow(section=s, label=label, cells=_cells(results, place, slots)) for s, label, place in lines)
    columns = tuple(slot.column for slot in slots)
    if not rows or not columns:
        nothing = f"Nothing of {results.name} belongs here: {results.default_reason}."
        return Table(name=name, title=title, stub=stub, columns=(), rows=(), notes=(nothing,))
    notes = tuple(_notes(results, rows))
    return Table(name=name, title=title, stub=stub, columns=columns, rows=rows, notes=notes)


def _cells(results: Results, place: Setting, slots: Sequence[Slot]) -> tuple[TableCell, ...]:
    settings = [replace(place, **slot.where) for slot in slots]
    found = [results.get(setting, slot.quantity) for setting, slot in zip(settings, slots, strict=True)]
    contests: dict[Hashable, list[int]] = defaultdict(list)
    for i, slot in enumerate(slots):
        contests[slot.contest].append(i)
    won = {
        i: mark
        for contest, places in contests.items()
        if contest is not None
        for i, mark in zip(places, marks([found[i] for i in places], BAND), strict=True)
    }
    return tuple(
        TableCell(content=content, mark=won.get(i, ""), setting=settings[i], quantity=slots[i].quantity)
        for i, content in enumerate(found)
    )


def _notes(results: Results, rows: Sequence[TableRow]) -> Iterator[str]:
    cells = [cell for row in rows for cell in row.cells]
    if any(cell.mark for cell in cells):
        yield BANDED
    yield from method_notes(cells)
    cautions = (note for cell in cells if cell.setting for note in results.cautions.get(cell.setting, ()))
    yield from (f"Caution: {note}" for note in dict.fromkeys(cautions))


def absence_notes(results: Results) -> Iterator[str]:
    """What the run as a whole lacks: stands under whatever shows a number of it."""
    yield from (f"Caution: {note}" for note in results.notes)


def doubts(results: Results) -> list[str]:
    """All that a reader without a table's footnotes must be told: under figures, on the dashboard, in a comparison."""
    texts = dict.fromkeys(f"{place}: {text}" for place, found in results.gaps.items() for text in found)
    more = [f"and {len(texts) - SPELT_OUT} more"] if len(texts) > SPELT_OUT else []
    lacking = [*absence_notes(results), *list(texts)[:SPELT_OUT], *more]
    return [*lacking, *speed_notes(results), *audit_notes(results)]


def speed_notes(results: Results) -> Iterator[str]:
    """Why speeds of the run are in doubt (`harness.stats.steadiness`), each reason once, with how many it concerns."""
    found = Counter(text for s, texts in results.unsteady.items() if not s.category for text in texts)
    said = [f"Speed in doubt in {n} of {len(results.sources)} settings: {text}" for text, n in found.most_common()]
    more = [f"and {len(said) - SPELT_OUT} more reasons"] if len(said) > SPELT_OUT else []
    yield from [*said[:SPELT_OUT], *more]


def audit_notes(results: Results) -> Iterator[str]:
    """What the daggers mean, the worst first."""
    said = {"fail": "FAILED its audit", "inconclusive": "inconclusively audited", "unaudited": "unaudited"}
    for verdict, words in said.items():
        if arms := [ARMS[arm].title for arm, found in results.unaudited.items() if found == verdict and arm in ARMS]:
            question = "does it sample from the target's distribution? specbench audit"
            yield f"{UNAUDITED} {words} ({question}): {', '.join(arms)}."


def method_notes(cells: Sequence[TableCell]) -> Iterator[str]:
    """The estimators behind the numbers, by quantity."""
    methods: dict[str, dict[str, None]] = defaultdict(dict)
    for cell in cells:
        if isinstance(cell.content, Estimate):
            methods[cell.quantity][cell.content.method] = None
    yield from (f"{quantity}: {'; '.join(found)}" for quantity, found in methods.items())


def title_of(results: Results, arm: str) -> str:
    """The arm as printed, with its width where the run has several, and a dagger if no certificate holds for it."""
    title = ARMS[arm].title if arm in ARMS else arm
    if arm in results.windows and block_width.unlike(results.windows):
        title = f"{title}, {block_width.drafted(results.windows[arm])}"
    return f"{title} {UNAUDITED}" if arm in results.unaudited else title


def arms_with(results: Results, quantity: str, where: Callable[[Setting], bool]) -> list[str]:
    """Arms that have the quantity, or a hole, somewhere in ``where``; not AR, nor variants, which have a table."""
    having = {
        s.arm for (s, q), e in results.values.items() if q == quantity and not isinstance(e, Missing) and where(s)
    }
    having |= {s.arm for s in results.holes if where(s)}
    return [arm for arm in results.arms() if arm in having and arm != "ar" and not word_of(arm)]


def whole(setting: Setting) -> bool:
    """A benchmark as such: no tier, no category, seeds averaged."""
    return not setting.tier and not setting.category and setting.seed is None


def lowest_concurrency(results: Results) -> int:
    """The concurrency of the one-stream tables: 1, or the lowest that the run has."""
    return min((s.concurrency for s in results.settings() if whole(s)), default=1)


def benchmark_lines(results: Results, target: str | None, temperatures: Sequence[float]) -> list[Line]:
    """A section per temperature, a row per benchmark, an average below several; arm (and target) are left open."""
    c = lowest_concurrency(results)
    sets = results.benchmarks(target)
    rows = [*sets, AVERAGE] if len(sets) > 1 else sets
    return [
        (
            f"T = {t:g}",
            printed(b),
            Setting(target=target or "", arm="", benchmark=b, temperature=t, concurrency=c),
        )
        for t in temperatures
        for b in rows
    ]


def temperatures(results: Results, where: Callable[[Setting], bool]) -> list[float]:
    """Those of the settings in ``where``, ascending."""
    return sorted({s.temperature for s in results.settings() if where(s)})

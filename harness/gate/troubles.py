"""What stands between two runs and a verdict, and what differs between them and may.

What makes two runs unlike (`harness.schema.comparable`) makes the comparison invalid; what differs and may (weights,
versions, server arguments) is named, because its effect is what a gate is asked about.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.gate.compare import facts_of
from harness.gate.match import shared
from harness.schema import comparable
from harness.schema.cell import Cell
from harness.schema.facts import between
from harness.schema.header import Outcome
from harness.stats.absent import MISSING, Absent, setting_of
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import Setting, table_order
from harness.sweep.sweep import AR

INCONCLUSIVE, INVALID, INFRASTRUCTURE = 3, 4, 5
ONE_REPEAT = (
    "throughput is never decided by one repeat on each side, because nothing tells noise from change: write "
    "repeats = 3 in the sweep, let gate --until-decided measure more, or judge --metric tau"
)
# exit code of an absent cell of the candidate; every other failure speaks of the machine
CODES = {
    MISSING: INCONCLUSIVE,
    Outcome.NOT_ATTESTED: INVALID,
    Outcome.INVALID: INVALID,
    Outcome.MISSING_SET: INVALID,
}
ORDER = (INVALID, INFRASTRUCTURE, INCONCLUSIVE)  # the worst first


@dataclass(frozen=True)
class Trouble:
    """Why a comparison cannot be trusted: exit code 3 (inconclusive), 4 (invalid) or 5 (infrastructure), and why."""

    code: int
    reason: str


def repeated(cells: Iterable[Cell]) -> bool:
    """Whether a plan has two allocations of a target, whose spread is a noise floor."""
    return max(Counter(target for target, *_ in {(c.target, c.seed, c.repeat) for c in cells}).values(), default=0) > 1


def troubles(baseline: Results, candidate: Results, speed: bool) -> list[Trouble]:
    """What stands between two runs and a verdict, the worst first; ``speed``: is throughput to be judged."""
    found = [
        *_nothing(baseline, candidate),
        *_without_plan(baseline, candidate),
        *_absent(baseline, candidate),
        *_not_planned(baseline, candidate),
        *_foreign(baseline, candidate),
        *_unlike(baseline, candidate, speed),
        *_without_ar(baseline, candidate, speed),
        *(_unsteady(baseline, candidate) if speed else ()),
    ]
    return sorted(found, key=lambda t: ORDER.index(t.code))


def differences(baseline: Results, candidate: Results) -> list[str]:
    """What differs and may, and what only the candidate has: named beside the verdict."""
    facts = [facts_of(results) for results in (baseline, candidate)]
    found = between(facts[0].values(), facts[1].values(), comparable.merged())
    named = [f"differs: {comparable.shown(f)}{f' of {of}' if of else ''}: {a} -> {b}" for f, of, a, b in found]
    new = [place for place in _planned(candidate) if place not in _planned(baseline)]
    runs = (("baseline", baseline), ("candidate", candidate))
    said = [f"{who}: {note}" for who, results in runs for note in results.notes]
    return [*named, *([f"not judged, only in the candidate: {_places(new)}"] if new else []), *said]


def _unsteady(baseline: Results, candidate: Results) -> Iterator[Trouble]:
    """Speeds from a machine that was busy or drifted (`harness.stats.steadiness`): each reason with its settings."""
    both = set(shared(baseline, candidate))
    for who, results in (("baseline", baseline), ("candidate", candidate)):
        places: dict[str, list[Setting]] = defaultdict(list)
        for setting, texts in results.unsteady.items():
            for text in texts if setting in both else ():
                places[text].append(setting)
        for text, carriers in places.items():
            yield Trouble(INCONCLUSIVE, f"{who}: speed in doubt: {text}: {'; '.join(map(str, carriers))}")


def _nothing(baseline: Results, candidate: Results) -> Iterator[Trouble]:
    """A gate is about drafters: AR by itself passes nothing."""
    for who, results in (("baseline", baseline), ("candidate", candidate)):
        if not {cell.arm for cell in results.planned or ()} - {AR} and not set(results.arms()) - {AR}:
            yield Trouble(INVALID, f"{who}: no arm but {AR}, so there is no drafter to judge")


def _without_plan(baseline: Results, candidate: Results) -> Iterator[Trouble]:
    for who, results in (("baseline", baseline), ("candidate", candidate)):
        if results.planned is None:
            yield Trouble(INVALID, f"{who}: no plan.json, so what it lacks cannot be told: measure it again")


def _absent(baseline: Results, candidate: Results) -> Iterator[Trouble]:
    """Every failed or missing cell. One of the baseline cannot be put right by measuring more, so it is invalid."""
    yield from (Trouble(CODES.get(a.outcome, INFRASTRUCTURE), _named(a)) for a in candidate.absent)
    yield from (Trouble(INVALID, f"baseline: {_named(a)}") for a in baseline.absent)


def _named(one: Absent) -> str:
    return f"{one.setting}: {one}"


def _not_planned(baseline: Results, candidate: Results) -> Iterator[Trouble]:
    """Settings and seeds of the baseline that the candidate never meant to measure."""
    planned = _planned(candidate)
    gone = [place for place in _planned(baseline) if place not in planned]
    if gone and candidate.planned is not None:
        yield Trouble(INCONCLUSIVE, f"in the baseline, and not planned by the candidate: {_places(gone)}")


def _foreign(baseline: Results, candidate: Results) -> Iterator[Trouble]:
    """Judged settings whose numbers hold cells that no plan names."""
    both = set(shared(baseline, candidate))
    for who, results in (("baseline", baseline), ("candidate", candidate)):
        known = {cell.id for cell in results.planned or ()}
        odd = [
            s for s in sorted(both, key=table_order) if results.planned is not None and set(results.sources[s]) - known
        ]
        if odd:
            yield Trouble(INVALID, f"{who}: cells that are in no plan count in {'; '.join(map(str, odd))}")


def _planned(results: Results) -> dict[tuple[Setting, int], None]:
    return dict.fromkeys((setting_of(cell), cell.seed) for cell in results.planned or ())


def _places(found: Sequence[tuple[Setting, int]]) -> str:
    return "; ".join(f"{setting} seed {seed}" for setting, seed in found)


def _unlike(baseline: Results, candidate: Results, speed: bool) -> Iterator[Trouble]:
    facts = [facts_of(results) for results in (baseline, candidate)]
    if not shared(baseline, candidate):
        yield Trouble(INVALID, "no setting was measured by both runs")
    for field, of, a, b in between(facts[0].values(), facts[1].values(), comparable.compared(speed)):
        name = f"{comparable.shown(field)}{f' of {of}' if of else ''}"
        yield Trouble(INVALID, f"{name}: baseline {a!r}, candidate {b!r}")
    for setting in shared(baseline, candidate):
        old, new = (_prompts(results, setting) for results in (baseline, candidate))
        if old != new:
            odd = sorted(old ^ new)
            yield Trouble(INVALID, f"{setting}: {len(odd)} prompts are in one run only, the first is {odd[0]}")


def _prompts(results: Results, setting: Setting) -> set[str]:
    return {p for cell in results.sources[setting] for p in results.prompt_counts[cell].prompts}


def _without_ar(baseline: Results, candidate: Results, speed: bool) -> Iterator[Trouble]:
    """Arms whose throughput cannot be judged, because no AR stands beside them."""
    for who, results in (("baseline", baseline), ("candidate", candidate)):
        alone = [s for s in shared(baseline, candidate) if not isinstance(results.get(s, "speedup"), Estimate)]
        if speed and (found := [s for s in alone if s.arm != "ar"]):
            names = "; ".join(map(str, found))
            yield Trouble(
                INCONCLUSIVE, f"{who}: no AR in the allocation, so no speedup (--metric tau needs none): {names}"
            )

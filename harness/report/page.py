"""The report of a run: one page whose sections hold sentences and tables, written as text, Markdown or HTML alike."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from harness.report import gaps, latency, load, rank_tables
from harness.report.contrasts import QUANTITIES, contrast
from harness.report.ranking import RankedPanel, panels
from harness.report.sentences import sentence, where
from harness.stats import noise
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.tables.scores import COLUMNS, scores
from harness.tables.table import Table

PLACES = COLUMNS.index("places")
FASTEST, DOUBT, NEXT = "Who is fastest", "Not measured, or in doubt", "What to do next"


@dataclass(frozen=True, kw_only=True)
class Section:
    """Sentences, tables, and the sentences that explain them."""

    title: str
    lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """``about`` says where and when it was measured; ``panels`` stand in the sections after the first, one each."""

    name: str
    about: str
    sections: tuple[Section, ...]
    panels: tuple[RankedPanel, ...] = ()


def report(results: Results, rows: pd.DataFrame | None = None) -> Report:
    """``rows`` as `harness.store.run.load` gives them; without them nothing is said of latency."""
    found = panels(results)
    lacking = gaps.gaps(results)
    sections = [
        Section(title=FASTEST, lines=(*(rank_tables.answer(p) for p in found), *rank_tables.exactness(found))),
        *(_panel(results, p) for p in found),
        Section(title="Under load", lines=tuple(load.drift(results)), tables=tuple(load.tables(results))),
        _scores(results),
        Section(title="Latency", tables=tuple(_latency(results, rows))),
        Section(title=DOUBT, lines=tuple(gap.text for gap in lacking)),
        Section(title=NEXT, lines=tuple(dict.fromkeys(gap.remedy for gap in lacking if gap.remedy))),
    ]
    kept = tuple(s for s in sections if s.lines or s.tables or s.title == FASTEST)
    name = Path(results.name).name or results.name
    return Report(name=name, about=about(results), sections=kept, panels=tuple(found))


def about(results: Results) -> str:
    """Device, versions, days."""
    cells = results.cells
    if cells is None:
        return "The published numbers (arXiv 2608.20530): one NVIDIA H100, intervals are the rounding of print."
    ok = cells[cells.outcome == "ok"]
    parts = [f"{len(ok):,} of {len(cells):,} measured cells are ok"]
    for key, name in (("env_device_name", ""), ("env_sglang", "SGLang "), ("env_specbench", "specbench ")):
        values = sorted({str(v) for v in ok.get(key, ()) if v})
        parts += [name + ", ".join(values)] if values else []
    days = sorted({str(t)[:10] for t in ok.started_at if t})
    parts += [days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"] if days else []
    return "; ".join(parts) + "."


def brief(whole: Report) -> Report:
    """The answer, the doubts and what to do next: what stands under a run's own tables."""
    kept = tuple(s for s in whole.sections if s.title in (FASTEST, DOUBT, NEXT))
    return Report(name=whole.name, about=whole.about, sections=kept)


def _panel(results: Results, panel: RankedPanel) -> Section:
    """The ranks, and the fastest drafter against each other one."""
    floors = {q: noise.floors(results, q) for q in ("throughput", "tau")}
    lines = []
    if panel.drafted:
        first, *others = panel.drafted
        for other in others:
            parts = [contrast(results, first.setting, other.setting.arm, q, floors) for q in QUANTITIES]
            lines.append(sentence(parts))
    tables = (rank_tables.table(results, panel),) if panel.ranks or panel.lacking else ()
    return Section(title=where(panel.place, panel.sets), tables=tables, after=tuple(lines))


def _scores(results: Results) -> Section:
    """Only where there are more than two places to win."""
    table = scores(results)
    places = [row.cells[PLACES].content for row in table.rows]
    several = any(isinstance(n, Estimate) and n.value > 2 for n in places)
    return Section(title="Wins, ties and trails", tables=(table,) if several else ())


def _latency(results: Results, rows: pd.DataFrame | None) -> list[Table]:
    if rows is None or results.cells is None:
        return []
    found = latency.table(results.cells, rows)
    return [found] if found else []

"""A panel as a table, and its first line: who is fastest, and from whom it cannot be told apart."""

from collections.abc import Sequence

from harness.report.ranking import FAILED, Ranked, RankedPanel
from harness.report.sentences import title, where
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.tables.cell_text import number
from harness.tables.table import Column, Table, TableCell, TableRow, Text, words

COLUMNS = (
    Column(name="speedup over AR"),
    Column(name="tokens/s", decimals=1),
    Column(name="tau"),
    Column(name="block time, ms"),
    Column(name="against the first, %", decimals=1),
    Column(name="exact"),
    Column(name="doubts"),
)
MARKS = {"open": "~", "equal": "=", "not measured": "~"}
NOTE = (
    "Ranks go by speedup. = marks an arm that is as fast as the first, within the band; ~ one that the measurement "
    "does not tell from it; x one that failed its audit."
)
EXACT = {
    "audited": "audited, and exact: it samples from the target's distribution",
    "published": "not audited here, the paper's own numbers",
    FAILED: "FAILED its audit: it does not sample from the target's distribution, so it is no drafter",
    "inconclusive": "its audit did not decide whether it is exact",
    "unaudited": "not audited: whether it is exact is not known",
}
INTERVALS = ("Intervals are 95 %, over prompts.", "Intervals are the rounding of the printed numbers.")


def answer(panel: RankedPanel) -> str:
    """One line."""
    place = where(panel.place, panel.sets)
    if not panel.drafted:
        lacking = "; ".join(f"{title(arm)}: {why}" for arm, why in panel.lacking[:1])
        return f"{place}: no drafter has a speed ({lacking or 'none was measured'})."
    first = panel.ranks[0]
    arm = title(first.setting.arm)
    if first.setting.arm == "ar":
        best = panel.drafted[0]
        return f"{place}: no drafter is faster than AR; the nearest is {title(best.setting.arm)}{_times(best)}."
    leads = "is fastest" if all(r.behind is None or r.behind.verdict != "open" for r in panel.ranks) else "leads"
    return f"{place}: {arm} {leads}{_times(first)}{_near(panel)}.{_absent(panel)}"


def _absent(panel: RankedPanel) -> str:
    """Arms that could have been faster and have no number."""
    arms = [title(arm) for arm, _ in panel.lacking]
    return f" No number for {', '.join(arms)}: who is fastest may change." if arms else ""


def _near(panel: RankedPanel) -> str:
    """Arms as fast as the first, and those of which that is not known."""
    said = {"equal": "equally fast, within the band, is", "open": "this measurement does not tell it from"}
    found = {
        verdict: [title(r.setting.arm) for r in panel.ranks[1:] if r.behind is not None and r.behind.verdict == verdict]
        for verdict in said
    }
    return "".join(f"; {words} {', '.join(found[verdict])}" for verdict, words in said.items() if found[verdict])


def _times(ranked: Ranked) -> str:
    if isinstance(ranked.speedup, Missing):
        return ""
    return f", {number(ranked.speedup, 2, interval=True)} times AR"


def exactness(panels: Sequence[RankedPanel]) -> list[str]:
    """Of the arms that lead somewhere: whether they were shown to sample from the target's distribution."""
    first = [p.drafted[0] for p in panels if p.drafted]
    badges = {title(r.setting.arm): r.badge for r in first}
    return [
        f"{', '.join(arm for arm, own in badges.items() if own == badge)}: {EXACT[badge]}."
        for badge in dict.fromkeys(badges.values())
    ]


def table(results: Results, panel: RankedPanel) -> Table:
    """Arms by rank, those without a speed last."""
    doubts = list(dict.fromkeys(d for r in panel.ranks for d in r.doubts))
    rows = [_row(place, r, doubts) for place, r in enumerate(panel.ranks, 1)]
    rows += [_lacking(arm, why) for arm, why in panel.lacking]
    s = panel.place
    shown = COLUMNS if doubts else COLUMNS[:-1]
    return Table(
        name=f"rank-{s.target}-{s.benchmark}-t{s.temperature:g}-c{s.concurrency}",
        title=where(s, panel.sets),
        stub="Arm",
        columns=shown,
        rows=tuple(TableRow(label=row.label, cells=row.cells[: len(shown)]) for row in rows),
        notes=(NOTE, INTERVALS[results.cells is None], *(f"Doubt {n}: {text}" for n, text in enumerate(doubts, 1))),
        intervals=True,
    )


def _row(place: int, r: Ranked, doubts: list[str]) -> TableRow:
    mark = MARKS.get(r.behind.verdict, "") if r.behind is not None else ""
    ar = r.setting.arm == "ar"
    numbers = (
        TableCell(content=Text("1") if ar and isinstance(r.speedup, Missing) else r.speedup, setting=r.setting),
        TableCell(content=r.throughput, setting=r.setting, quantity="throughput"),
        TableCell(content=Text("") if ar else r.tau, setting=r.setting, quantity="tau"),
        TableCell(content=Text("") if ar else r.block_ms, setting=r.setting, quantity="block_ms"),
        TableCell(content=_behind(r)),
    )
    listed = ", ".join(str(doubts.index(d) + 1) for d in r.doubts)
    rank = "x" if r.badge == FAILED else f"{place}{mark}"
    return TableRow(label=f"{rank} {title(r.setting.arm)}", cells=(*numbers, *words(r.badge, listed)))


def _behind(r: Ranked) -> Estimate | Missing | Text:
    return Text("") if r.behind is None else r.behind.change


def _lacking(arm: str, why: str) -> TableRow:
    holes = [TableCell(content=Missing(why))] * 4
    return TableRow(label=f"- {title(arm)}", cells=(*holes, *words("", "", "")))

"""A panel as a table, and its first line: who is fastest, and from whom it cannot be told apart."""

from harness.report.ranking import FAILED, Panel, Ranked
from harness.report.sentences import title, where
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.tables.cell_text import number
from harness.tables.table import Cell, Column, Row, Table, Text, words

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
INTERVALS = ("Intervals are 95 %, over prompts.", "Intervals are the rounding of the printed numbers.")


def answer(panel: Panel) -> str:
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
    return f"{place}: {arm} {leads}{_times(first)}{_near(panel)}. {_exactness(first)}{_absent(panel)}"


def _absent(panel: Panel) -> str:
    """Arms that could have been faster and have no number."""
    arms = [title(arm) for arm, _ in panel.lacking]
    return f" No number for {', '.join(arms)}: who is fastest may change." if arms else ""


def _near(panel: Panel) -> str:
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


def _exactness(ranked: Ranked) -> str:
    said = {
        "audited": "It passed its audit: it samples from the target's distribution.",
        "published": "The paper's number: not audited here.",
        FAILED: "It FAILED its audit: it does not sample from the target's distribution, so it is no drafter.",
        "inconclusive": "Its audit is inconclusive.",
    }
    return said.get(ranked.badge, "Whether it is exact was not audited.")


def table(results: Results, panel: Panel) -> Table:
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
        rows=tuple(Row(label=row.label, cells=row.cells[: len(shown)]) for row in rows),
        notes=(NOTE, INTERVALS[results.cells is None], *(f"Doubt {n}: {text}" for n, text in enumerate(doubts, 1))),
        intervals=True,
    )


def _row(place: int, r: Ranked, doubts: list[str]) -> Row:
    mark = MARKS.get(r.behind.verdict, "") if r.behind is not None else ""
    ar = r.setting.arm == "ar"
    numbers = (
        Cell(content=Text("1") if ar and isinstance(r.speedup, Missing) else r.speedup, setting=r.setting),
        Cell(content=r.throughput, setting=r.setting, quantity="throughput"),
        Cell(content=Text("") if ar else r.tau, setting=r.setting, quantity="tau"),
        Cell(content=Text("") if ar else r.block_ms, setting=r.setting, quantity="block_ms"),
        Cell(content=_behind(r)),
    )
    listed = ", ".join(str(doubts.index(d) + 1) for d in r.doubts)
    rank = "x" if r.badge == FAILED else f"{place}{mark}"
    return Row(label=f"{rank} {title(r.setting.arm)}", cells=(*numbers, *words(r.badge, listed)))


def _behind(r: Ranked) -> Estimate | Missing | Text:
    return Text("") if r.behind is None else r.behind.change


def _lacking(arm: str, why: str) -> Row:
    holes = [Cell(content=Missing(why))] * 4
    return Row(label=f"- {title(arm)}", cells=(*holes, *words("", "", "")))

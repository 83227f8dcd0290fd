"""The history page: a small chart for each arm and metric, what changed between two runs, and the list of runs."""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from harness.gate.history import Entry
from plots import style
from plots.dashboard import charts, history_frame
from plots.dashboard.page import Page, Section, card, chart, data_block, grid, slug, table, titled

POOLED = "pooled"
METRICS = ("speedup", "tau", "throughput", "head_ms")
Cards = dict[tuple[str, str], list[tuple[str, Markup]]]
NOTE = (
    "Mean over all settings of a run. A dot is a run, coloured by its gate: green ok, amber inconclusive, red "
    "regression or invalid, grey not judged. The band is two standard deviations of the measured noise between "
    "launches around the last level; a dashed line marks where the level changed."
)


def cards(history: pd.DataFrame, out: Path) -> Cards:
    """A card for each pooled series of the history, by (device, target); the arms' pages show theirs again."""
    pooled = history[history.setting == POOLED]
    order = {m: i for i, m in enumerate(METRICS)}
    made: Cards = {}
    for place, part in pooled.groupby(["device", "target"], sort=False):
        groups = part.groupby(["arm", "metric"], sort=False)
        for (arm, metric), own in sorted(groups, key=lambda g: order.get(str(g[0][1]), len(order))):
            title = f"{style.title(str(arm))}: {charts.AXES.get(str(metric), str(metric))}"
            made.setdefault((str(place[0]), str(place[1])), []).append((str(arm), _one(own, title, out)))
    return made


def heading(place: tuple[str, str]) -> str:
    """Of a (device, target)."""
    return f"{place[1]} on {place[0] or 'an unknown device'}"


def page(entries: Sequence[Entry], history: pd.DataFrame, made: Cards) -> Page:
    """Every part of it, as far as the number of runs allows."""
    several = len(entries) > 1
    note = NOTE if several else "One run so far: a history begins with the second."
    sections = [
        Section(id=slug(heading(place)), title=heading(place), note=note, blocks=(grid([c for _, c in found]),))
        for place, found in made.items()
    ]
    if several:
        sections.append(_changes(entries, history))
    sections.append(Section(id="runs", title="Runs, newest first", blocks=(table(runs_table(entries)),)))
    about = f"{len(entries)} runs, {_day(entries[0])} to {_day(entries[-1])}." if several else _day(entries[0])
    return Page(name="history.html", title="History", about=about, sections=tuple(sections))


def _day(entry: Entry) -> str:
    return entry.time[:10]


def _one(own: pd.DataFrame, title: str, out: Path) -> Markup:
    """A chart; a number while there is one run."""
    last = own.iloc[-1]
    if len(own) == 1:
        return card(title, f"{last.value:.4g}", f"{last.run}, {str(last.time)[:10]}{_exactness(own)}")
    found = history_frame.changes(own)
    moved = [f"{math.expm1(c.size):+.2%} at run {own.run.iloc[c.at]}" for c in found]
    note = f"last {last.value:.4g}; {'; '.join(moved) or 'no change point'}{_exactness(own)}"
    floor = history_frame.floor(own)
    by_date = own.time.nunique() == len(own)
    drawn = charts.series(own, found, floor, by_date)
    name = f"{last.device} {last.target} {title}"
    return titled(title, note, chart(drawn, out, name, f"{title} over {len(own)} runs: {note}", own))


def _exactness(own: pd.DataFrame) -> str:
    """Of how many runs of a series nothing says that the arm is exact."""
    open_ = int((own.audited != "yes").sum()) if own.arm.iloc[0] != "ar" else 0
    return f"; no passed audit on record for {open_} of {len(own)}" if open_ else ""


def runs_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """What the history says of each run but its numbers."""
    lines = [
        {
            "run": e.run,
            "date": e.time[:16].replace("T", " "),
            "gate": e.verdict or "not judged",
            "against": e.against,
            "device": e.device_name,
            "commit": e.commit[:12],
            "noise between launches": "" if e.noise is None else f"{100 * e.noise:.2f} %",
            "unaudited arms": _unaudited(e),
            **e.versions,
        }
        for e in reversed(entries)
    ]
    return pd.DataFrame(lines).fillna("")


def _unaudited(entry: Entry) -> str:
    if entry.unaudited is None:
        return "not recorded"
    return ", ".join(style.title(arm) for arm in sorted(entry.unaudited)) or "none"


def _changes(entries: Sequence[Entry], history: pd.DataFrame) -> Section:
    """Two menus and a table that the page's script fills."""
    runs: list[dict[str, object]] = [{"name": f"{e.run} ({_day(e)})", "facts": _facts(e)} for e in entries]
    pooled = history[history.setting == POOLED]
    series = []
    for (target, arm, metric), own in pooled.groupby(["target", "arm", "metric"], sort=False):
        values: list[float | None] = [None] * len(entries)
        for p in own.itertuples():
            values[p.line] = float(p.value)
        name = f"{target}, {style.title(str(arm))}, {charts.AXES.get(str(metric), str(metric))}"
        noise = history_frame.floor(own)
        series.append({"name": name, "values": values, "noise": 2 * math.sqrt(2) * noise})
    body = Markup(
        '<div class="choose"><label>older run <select id="older">{older}</select></label>'
        '<label>newer run <select id="newer">{newer}</select></label></div>'
        '<div class="scroll" tabindex="0" role="region" aria-label="facts that differ"><table class="plain"><thead><tr>'
        '<th scope="col">what differs</th><th scope="col">older</th><th scope="col">newer</th></tr></thead>'
        '<tbody id="changed-facts"></tbody></table></div>'
        '<div class="scroll" tabindex="0" role="region" aria-label="numbers that changed">'
        '<table class="plain"><thead><tr>'
        '<th scope="col">number</th><th scope="col">older</th><th scope="col">newer</th><th scope="col">change</th>'
        '</tr></thead><tbody id="changes"></tbody></table></div>'
        "<noscript><p>Choosing two runs needs JavaScript; the numbers are in the files under data/.</p></noscript>"
    ).format(older=_options(runs, _older(entries)), newer=_options(runs, len(runs) - 1))
    note = (
        "Largest change first; coloured where it is more than the noise between launches explains (2 standard "
        "deviations of a difference), where that was measured."
    )
    blocks = (body, data_block("runs-data", {"runs": runs, "series": series}))
    return Section(id="changed", title="What changed between two runs", note=note, blocks=blocks)


def _older(entries: Sequence[Entry]) -> int:
    """The run that the newest one was judged against, where the history has it; else the one before."""
    accepted = entries[-1].baseline
    places = [i for i, e in enumerate(entries[:-1]) if accepted and e.identity == accepted]
    return places[-1] if places else max(len(entries) - 2, 0)


def _facts(entry: Entry) -> dict[str, str]:
    """What may explain a change."""
    return {"commit": entry.commit, "device": entry.device_name, "gate": entry.verdict or "not judged",
            "unaudited arms": _unaudited(entry), **entry.versions}  # fmt: skip


def _options(runs: list[dict[str, object]], chosen: int) -> Markup:
    return Markup("").join(
        Markup('<option value="{}"{}>{}</option>').format(i, Markup(" selected") if i == chosen else "", run["name"])
        for i, run in enumerate(runs)
    )

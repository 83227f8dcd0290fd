"""The first page: the report of the newest run, with its trade-off chart and bars; without one, the last numbers."""

from pathlib import Path

import numpy as np
import pandas as pd
from markupsafe import Markup

from harness.report.page import Report
from harness.report.ranking import RankedPanel
from harness.report.render import section_html
from harness.report.sentences import where
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting, printed
from harness.tables.cell_text import number
from plots import style
from plots.dashboard import charts
from plots.dashboard.page import BADGES, Page, Section, card, chart, grid, titled

LINES = 5  # of equal speed


def page(report: Report, results: Results, out: Path, judged: str) -> Page:
    """The report's sections, each panel with its charts; ``judged``: what the gate said of the run."""
    blocks = [grid([_first(panel) for panel in report.panels])]
    last = len(report.panels)
    for place, section in enumerate(report.sections):
        extra = _charts(results, report.panels[place - 1], out) if 0 < place <= last else Markup("")
        blocks.append(Markup(section_html(section, str(extra))))
    return Page(
        name="index.html",
        title=report.name,
        about=" ".join(filter(None, (report.about, judged))),
        raw=Markup("").join(blocks),
    )


def _first(panel: RankedPanel) -> Markup:
    """A panel's first drafter, large; the sentences below say how surely it is the first."""
    place = where(panel.place, panel.sets)
    if not panel.drafted:
        return card(place, "no speed", "no drafter has a number here")
    first = panel.drafted[0]
    times = f" {number(first.speedup, 2)}x" if isinstance(first.speedup, Estimate) else ""
    doubt = f"95 % interval {_bounds(first.speedup)}; " if _bounds(first.speedup) else ""
    near = [r for r in panel.drafted[1:] if r.behind is not None and r.behind.verdict not in ("less", "more")]
    alike = f"; not told from {len(near)} other{'s' if len(near) > 1 else ''}" if near else ""
    lacking = [style.title(arm) for arm, _ in panel.lacking]
    alike += f"; no number for {', '.join(lacking)}" if lacking else ""
    return Markup(
        '<div class="card first" style="--arm: {}"><h3>{}</h3><p class="big">{}{}</p><p class="note">{}'
        '<span class="badge {}">{}</span>{}</p></div>'
    ).format(
        style.screen_colour(first.setting.arm), place, style.title(first.setting.arm), times, doubt,
        BADGES.get(first.badge, "plain"), first.badge, alike,
    )  # fmt: skip


def _bounds(e: Estimate | Missing) -> str:
    if isinstance(e, Missing) or e.low is None or e.high is None:
        return ""
    return f"{e.low:.2f} to {e.high:.2f}"


def without_rows(history: pd.DataFrame) -> Page:
    """The pooled numbers of the last run in the history, when no run folder was given."""
    last = history.run.iloc[-1]
    own = history[(history.run == last) & (history.setting == "pooled")]
    cards = [
        card(f"{style.title(p.arm)}, {p.target}", f"{p.value:.4g}", charts.AXES.get(p.metric, p.metric))
        for p in own.itertuples()
    ]
    note = "Build the site with --run RUN to have the report of a run: who is fastest, by how much, how surely."
    section = Section(id="last", title=f"Last run: {last}", note=note, blocks=(grid(cards),))
    return Page(name="index.html", title="Last run", sections=(section,))


def _charts(results: Results, panel: RankedPanel, out: Path) -> Markup:
    made = []
    s = panel.place
    name = f"{s.target} {s.benchmark} T={s.temperature:g} c={s.concurrency}"
    points = _points(panel)
    if len(points) > 1:
        drawn = charts.tradeoff(points, _lines(points, s.concurrency))
        text = f"tau against block time, {name}: up and left is faster"
        block = chart(drawn, out, f"tradeoff {name}", text, points)
        made.append(Markup("<h3>Accepting more, or costing less</h3>{}").format(block))
    if bars := _bars(results, panel, out, name):
        made.append(Markup("<h3>Speedup by prompt set, 95 % intervals over prompts</h3>{}").format(grid(bars)))
    return Markup("").join(made)


def _points(panel: RankedPanel) -> pd.DataFrame:
    """Arms with both numbers; an interval that does not exist is the value itself."""
    points = []
    for rank in panel.drafted:
        tau, block = rank.tau, rank.block_ms
        if isinstance(tau, Estimate) and isinstance(block, Estimate):
            speed = rank.throughput.value if isinstance(rank.throughput, Estimate) else float("nan")
            points.append(
                {"arm": rank.setting.arm, "title": style.title(rank.setting.arm), **_interval("tau", tau),
                 **_interval("block", block), "speed": speed}
            )  # fmt: skip
    return pd.DataFrame(points)


def _interval(name: str, e: Estimate) -> dict[str, float]:
    low, high = (e.value if bound is None else bound for bound in (e.low, e.high))
    return {name: e.value, f"{name}_low": low, f"{name}_high": high}


def _lines(points: pd.DataFrame, concurrency: int) -> pd.DataFrame:
    """Ends of lines along which tau / block time, and so the speed of decoding, is one."""
    speeds = 1000 * concurrency * points.tau / points.block
    reach = max(float(speeds.max() - speeds.min()), 0.1 * float(speeds.mean()))
    left, right = float(points.block_low.min()), float(points.block_high.max())
    lines = []
    for speed in np.linspace(speeds.min() - 0.3 * reach, speeds.max() + 0.3 * reach, LINES):
        for block in (left, right):
            tau = speed * block / (1000 * concurrency)
            lines.append({"speed": float(speed), "block": block, "tau": tau, "label": f"{speed:.0f} tokens/s"})
    frame = pd.DataFrame(lines)
    inside = frame.groupby("speed").tau.transform("min") < float(points.tau_high.max())
    return frame[inside & (frame.groupby("speed").tau.transform("max") > float(points.tau_low.min()))]


def _bars(results: Results, panel: RankedPanel, out: Path, name: str) -> list[Markup]:
    """One chart a prompt set, all with the same axis."""
    s = panel.place
    arms = [r.setting.arm for r in panel.drafted] + [arm for arm, _ in panel.lacking if arm != "ar"]
    sets = results.benchmarks(s.target) if s.benchmark == AVERAGE else [s.benchmark]
    frame = bar_frame(results, s, arms, sets, "speedup")
    if not arms or frame.value.isna().all():
        return []
    made = []
    for title, part in frame.groupby("set", sort=False):
        drawn = charts.bars(part, arms, "speedup", float(frame[["value", "high"]].max().max()))
        text = f"speedup of each arm on {title}, {name}"
        made.append(titled(str(title), "", chart(drawn, out, f"bars {name} {title}", text, part)))
    return made


def bar_frame(results: Results, place: Setting, arms: list[str], sets: list[str], quantity: str) -> pd.DataFrame:
    """One line a set and arm: set, arm, title, value, low, high, reason ("" where there is a number)."""
    lines = []
    for benchmark in sets:
        for arm in arms:
            where = Setting(
                target=place.target, arm=arm, benchmark=benchmark, temperature=place.temperature,
                concurrency=place.concurrency, tier=place.tier,
            )  # fmt: skip
            found = results.get(where, quantity)
            low, high, reason = float("nan"), float("nan"), ""
            value = found.value if isinstance(found, Estimate) else float("nan")
            if isinstance(found, Missing):
                reason = found.reason
            elif found.low is not None and found.high is not None:
                low, high = found.low, found.high
            lines.append((printed(benchmark), arm, style.title(arm), value, low, high, reason))
    return pd.DataFrame(lines, columns=["set", "arm", "title", "value", "low", "high", "reason"])

"""A page for each prompt set: acceptance and speed of every arm on it, survival of slots, load, and history."""

from pathlib import Path

import pandas as pd

from harness.stats.cell_draws import SURVIVAL
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, TIERS, Setting, printed
from plots import style
from plots.dashboard import charts
from plots.dashboard.front import bar_frame
from plots.dashboard.history_page import heading
from plots.dashboard.page import Page, Section, chart, grid, slug, titled


def name_of(name: str) -> str:
    """File name."""
    return f"set-{slug(name)}.html"


def page(name: str, results: Results | None, history: pd.DataFrame, out: Path) -> Page:
    """``name``: a prompt set, or ``set/tier`` as the history writes it."""
    benchmark, _, tier = name.partition("/")
    sections = []
    if results is not None:
        sections += _newest(results, benchmark, tier, out)
    sections += _history(history[history.set == name], out)
    title = f"{printed(benchmark)} {TIERS.get(tier, tier)}".strip()
    return Page(name=name_of(name), title=title, about=f"prompt set {name}", sections=tuple(sections))


def _history(history: pd.DataFrame, out: Path) -> list[Section]:
    """All arms in one chart, for each device, target, metric, temperature and concurrency; from two runs on."""
    sections = []
    for (device, target), part in history.groupby(["device", "target"], sort=False):
        cards = []
        for (metric, t, c), own in part[part.arm != "ar"].groupby(["metric", "temperature", "concurrency"]):
            if own.run.nunique() < 2:
                continue
            arms = sorted(own.arm.unique())
            own = own.assign(title=own.arm.map(style.title))
            title = f"{charts.AXES.get(metric, metric)}, T = {t}, concurrency {c:g}"
            made = chart(
                charts.runs(own, arms), out, f"history {device} {target} {own.set.iloc[0]} {title}", title, own
            )
            cards.append(titled(title, "", made))
        if cards:
            title = f"History: {heading((str(device), str(target)))}"
            sections.append(Section(id=slug(title), title=title, blocks=(grid(cards),)))
    return sections


def _newest(results: Results, benchmark: str, tier: str, out: Path) -> list[Section]:
    own = [s for s in results.settings()
           if s.benchmark == benchmark and s.tier == tier and not s.category and s.benchmark != AVERAGE]  # fmt: skip
    sections = []
    for place in sorted({s.of("") for s in own}):
        cards = _bars(results, place, [s.arm for s in own if s.of("") == place], out)
        cards += _survival(results, place, out)
        if cards:
            title = f"{place.target}, T = {place.temperature:g}, concurrency {place.concurrency}"
            sections.append(Section(id=slug(title), title=title, blocks=(grid(cards),)))
    return sections + _load(results, own, out)


def _bars(results: Results, place: Setting, present: list[str], out: Path) -> list:  # type: ignore[type-arg]
    arms = [a for a in results.arms(place.target) if a in present and a != "ar"]
    made = []
    for quantity in ("tau", "speedup"):
        frame = bar_frame(results, place, arms, [place.benchmark], quantity)
        if len(frame) and frame.value.notna().any():
            reach = float(frame[["value", "high"]].max().max())
            name = f"{quantity} {place}"
            text = f"{charts.AXES[quantity]} of each arm, {place}"
            drawn = charts.bars(frame, arms, quantity, reach)
            made.append(titled(charts.AXES[quantity], "95 % intervals", chart(drawn, out, name, text, frame)))
    return made


def _survival(results: Results, place: Setting, out: Path) -> list:  # type: ignore[type-arg]
    frame = results.frame(*SURVIVAL)
    if frame.empty:
        return []
    mine = (frame.benchmark == place.benchmark) & (frame.tier == place.tier) & (frame.target == place.target)
    mine &= (frame.temperature == place.temperature) & (frame.concurrency == place.concurrency)
    frame = frame[mine & frame.value.notna() & frame.seed.isna() & (frame.category == "")]
    if frame.empty:
        return []
    arms = [a for a in results.arms(place.target) if a in set(frame.arm)]
    frame = frame.assign(title=frame.arm.map(style.title))
    text = f"share of blocks that accept each drafted slot, {place}"
    return [
        titled(
            "Survival of drafted slots", "", chart(charts.survival(frame, arms), out, f"survival {place}", text, frame)
        )
    ]


def _load(results: Results, own: list[Setting], out: Path) -> list[Section]:
    """Speedup against concurrency, a chart a target and temperature with several levels."""
    frame = results.frame("speedup")
    if frame.empty or not own:
        return []
    first = own[0]
    frame = frame[(frame.benchmark == first.benchmark) & (frame.tier == first.tier) & frame.value.notna()]
    frame = frame[frame.seed.isna() & (frame.category == "") & (frame.arm != "ar")]
    cards = []
    for (target, temperature), part in frame.groupby(["target", "temperature"], sort=False):
        if part.concurrency.nunique() > 1:
            arms = [a for a in results.arms(target) if a in set(part.arm)]
            part = part.assign(title=part.arm.map(style.title))
            title = f"{target}, T = {temperature:g}"
            name = f"concurrency {first.benchmark} {first.tier} {title}"
            made = chart(charts.concurrency(part, arms), out, name, f"speedup against concurrency, {title}", part)
            cards.append(titled(title, "", made))
    return [Section(id="load", title="Under load", blocks=(grid(cards),))] if cards else []

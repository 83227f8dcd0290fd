"""The static site: which pages there are. No network and no server are needed to read it.

Everything that comes from a run folder (names, reasons, log tails) is untrusted text; ``page`` and the report's
templates escape it.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import vl_convert
from altair.utils.schemapi import debug_mode

from harness.gate.history import Entry
from harness.report.page import report
from harness.stats.results import Results
from harness.tables.build import doubts
from plots import style
from plots.dashboard import arm_page, front, health, history_frame, history_page, set_page
from plots.dashboard.page import Page, assets, write

POOLED = history_page.POOLED


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What a site is made from. ``results`` is the newest run and ``rows`` its requests; without them the site has no
    report.
    """

    history: list[Entry]
    results: Results | None = None
    rows: pd.DataFrame | None = None
    certificates: list[dict[str, Any]] = field(default_factory=list)
    judged: str = ""  # what the gate said of the run


def build(sources: Sources, out: Path) -> list[Path]:
    """Write the site into ``out`` and return its pages."""
    out.mkdir(parents=True, exist_ok=True)
    unaudited = sources.results.unaudited if sources.results is not None else ()
    with (
        style.look(unaudited),
        debug_mode(False),
    ):  # no schema check of every channel: half of the build's time; the browser test sees errors
        return _build(sources, out)


def _build(sources: Sources, out: Path) -> list[Path]:
    history = history_frame.long(sources.history)
    results = sources.results
    answer = report(results, sources.rows) if results is not None else None
    arms, sets = _arms(history, results), _sets(history, results)
    pages: list[Page] = [
        front.page(answer, results, out, sources.judged)
        if answer is not None and results is not None
        else front.without_rows(history),
        health.page(results, sources.certificates),
    ]
    cards = history_page.cards(history, out)
    if sources.history:
        pages.append(history_page.page(sources.history, history, cards))
    pages += [arm_page.page(arm, answer, cards, sources.certificates) for arm in arms]
    pages += [set_page.page(name, results, history, out) for name in sets]
    main = {"Report": "index.html", "Health": "health.html"}
    main |= {"History": "history.html"} if sources.history else {}
    navigation = {
        "": main,
        "Arms": {style.title(arm): arm_page.name_of(arm) for arm in arms},
        "Prompt sets": {page.title: page.name for page in pages if page.name.startswith("set-")},
    }
    (out / "vega.js").write_text(vl_convert.javascript_bundle(), encoding="utf-8")  # type: ignore[call-arg]  # its stub lacks the default
    assets(out)
    said = tuple(doubts(results)) if results is not None else ()
    return [write(replace(page, doubts=said), navigation, out) for page in pages]


def _arms(history: pd.DataFrame, results: Results | None) -> list[str]:
    """Of the newest run in its order, then those that only the history has."""
    newest = results.arms() if results is not None else []
    return list(dict.fromkeys([*newest, *sorted(history.arm.unique())]))


def _sets(history: pd.DataFrame, results: Results | None) -> list[str]:
    """Prompt sets, with their tier, as the history writes them."""
    found = sorted(set(history.set) - {POOLED})
    if results is not None:
        own = [s for s in results.settings() if not s.category and s.benchmark in _measured(results)]
        found += [f"{s.benchmark}/{s.tier}" if s.tier else s.benchmark for s in own]
    return list(dict.fromkeys(found))


def _measured(results: Results) -> set[str]:
    return {*results.benchmarks(), *results.benchmarks(tiers=True)}

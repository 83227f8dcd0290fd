"""The static site: which pages there are and what stands on each. No network and no server are needed to read it.

Everything that comes from a run folder (names, reasons, log tails) is untrusted text; ``page`` escapes it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
import vl_convert
from altair.utils.schemapi import debug_mode

from harness.gate.history import Entry
from harness.stats.cell_draws import SURVIVAL
from harness.stats.results import Results
from harness.tables.build import UNAUDITED, doubts
from plots.dashboard import charts, history_frame
from plots.dashboard.page import Page, Section, chart_section, slug, write

POOLED = "pooled"


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What a site is made from. ``results`` is the newest run; without it the pages that need raw rows are left out."""

    history: list[Entry]
    results: Results | None = None
    baseline: str = ""  # name of the run that the overview compares with; "" = the oldest in the history
    certificates: list[dict[str, Any]] = field(default_factory=list)


def build(sources: Sources, out: Path) -> list[Path]:
    """Write the site into ``out`` and return its pages."""
    out.mkdir(parents=True, exist_ok=True)
    with debug_mode(False):  # no schema check of every channel: half of the build's time; the browser test sees errors
        return _build(sources, out)


def _build(sources: Sources, out: Path) -> list[Path]:
    history = history_frame.long(sources.history)
    arms, sets = sorted(history.arm.unique()), sorted(set(history.set) - {POOLED})
    pages = [Page(name="index.html", title="Overview", sections=tuple(_overview(history, sources, out)))]
    pages += [_arm_page(history, arm, sources.results, out) for arm in arms]
    pages += [_set_page(history, sources.results, name, out) for name in sets]
    pages.append(Page(name="audits.html", title="Audit certificates", sections=(_certificates(sources.certificates),)))
    pages.append(Page(name="environment.html", title="Environment", sections=tuple(_environment(sources))))
    pages.append(Page(name="failures.html", title="Failed cells", sections=tuple(_failures(sources.results))))
    navigation = {"Overview": "index.html", "Audits": "audits.html", "Environment": "environment.html",
                  "Failures": "failures.html"}  # fmt: skip
    navigation |= {arm: f"arm-{slug(arm)}.html" for arm in arms} | {name: f"set-{slug(name)}.html" for name in sets}
    (out / "vega.js").write_text(vl_convert.javascript_bundle(), encoding="utf-8")  # type: ignore[call-arg]  # its stub lacks the default
    (out / "style.css").write_text((resources.files("plots") / "templates" / "style.css").read_text(encoding="utf-8"))
    return [write(page, navigation, out) for page in pages]


def _doubts(results: Results | None) -> list[Section]:
    """What the newest run lacks and which of its arms are unaudited; nothing if there is no such run, or no doubt."""
    found = doubts(results) if results is not None else []
    if results is None or not found:
        return []
    return [Section(id="doubts", title=f"What to know of {results.name}", text="\n".join(found))]


def _overview(history: pd.DataFrame, sources: Sources, out: Path) -> list[Section]:
    sections = _doubts(sources.results)
    last = sources.history[-1]
    base = sources.baseline or sources.history[0].run
    for metric in ("tau", "speedup"):
        table = _against(history[(history.metric == metric) & (history.set != POOLED)], last.run, base)
        for (target, temperature, concurrency), part in table.groupby(["target", "temperature", "concurrency"]):
            title = f"{metric}: {target} T={temperature} c={concurrency:g}"
            note = f"run {last.run} against {base}; verdict of its gate: {last.verdict or 'not judged'}"
            sections.append(chart_section(charts.overview(part), out, title, part, note))
    for metric in ("tau", "speedup", "throughput"):
        part = history[history.metric == metric]
        if len(part):
            note = "All numbers of all runs; choose below. Single arms and sets have pages of their own."
            sections.append(chart_section(charts.explorer(part, metric), out, f"explore {metric}", part, note))
    return sections


def _against(frame: pd.DataFrame, last: str, base: str) -> pd.DataFrame:
    """The last run's numbers with the baseline's beside them."""
    keys = ["target", "arm", "set", "temperature", "concurrency", "setting"]
    new = frame[frame.run == last].drop_duplicates(keys, keep="last")
    old = frame[frame.run == base].drop_duplicates(keys, keep="last").set_index(keys).value.rename("baseline")
    table = new.join(old, on=keys)
    return table.assign(change=table.value / table.baseline - 1)[[*keys, "value", "baseline", "change"]]


def _arm_page(history: pd.DataFrame, arm: str, results: Results | None, out: Path) -> Page:
    """Every pooled number of the arm over the runs, with change points and noise band; then its sets."""
    own = history[history.arm == arm]
    sections = _doubts(results)
    dagger = f" {UNAUDITED}" if results is not None and arm in results.unaudited else ""
    for (device, target, metric), part in own[own.setting == POOLED].groupby(["device", "target", "metric"]):
        found = history_frame.changes(part)
        note = "; ".join(f"{math.expm1(c.size):+.2%} at run {part.run.iloc[c.at]}" for c in found) or "no change point"
        title = f"{arm} {metric}: {target} on {device or 'unknown device'}"
        sections.append(chart_section(charts.series(part, found), out, title, part, note))
    links = {name: f"set-{slug(name)}.html" for name in sorted(set(own.set) - {POOLED})}
    return Page(
        name=f"arm-{slug(arm)}.html", title=arm + dagger,
        sections=(*sections, Section(id="sets", title="Prompt sets", links=links)),
    )  # fmt: skip


def _set_page(history: pd.DataFrame, results: Results | None, name: str, out: Path) -> Page:
    """One prompt set: survival and concurrency curves of the newest run, then its history by setting."""
    sections = []
    benchmark = name.split("/")[0]
    if results is not None:
        sections += [*_doubts(results), *_curves(results, benchmark, name, out)]
    for metric in ("tau", "speedup"):
        part = history[(history.set == name) & (history.metric == metric)]
        if len(part):
            sections.append(chart_section(charts.explorer(part, metric), out, f"{name} {metric} over the runs", part))
    return Page(name=f"set-{slug(name)}.html", title=name, sections=tuple(sections))


def _curves(results: Results, benchmark: str, name: str, out: Path) -> list[Section]:
    sections = []
    frame = results.frame(*SURVIVAL)
    if len(frame):
        frame = frame[(frame.benchmark == benchmark) & frame.value.notna() & frame.seed.isna() & (frame.category == "")]
        frame = frame[frame.concurrency == frame.concurrency.min()]
        if len(frame):
            sections.append(chart_section(charts.survival(frame), out, f"{name} survival", frame))
    frame = results.frame("speedup")
    frame = frame[(frame.benchmark == benchmark) & frame.value.notna() & frame.seed.isna() & (frame.category == "")]
    if frame.concurrency.nunique() > 1:
        sections.append(chart_section(charts.concurrency(frame), out, f"{name} concurrency", frame))
    return sections


def _certificates(certificates: list[dict[str, Any]]) -> Section:
    keys = ("target", "arm", "proposal", "device", "dtype", "verdict", "date", "smallest_p", "smallest_bias")
    rows = [{**c.get("attestation", {}), **c} for c in certificates]
    table = pd.DataFrame([{k: str(row.get(k, ""))[:40] for k in keys} for row in rows], columns=list(keys))
    note = (
        "An arm without a certificate for the weights that a run used is unaudited."
        if certificates
        else "No certificates."
    )
    return Section(id="certificates", title="Certificates", note=note, table=table)


def _environment(sources: Sources) -> list[Section]:
    lines = [
        {
            "run": e.run,
            "time": e.time,
            "commit": e.commit,
            "device": e.device_name,
            "verdict": e.verdict,
            "noise": e.noise,
            **e.versions,
        }
        for e in reversed(sources.history)
    ]
    sections = [Section(id="runs", title="Runs, newest first", table=pd.DataFrame(lines))]
    if sources.results is not None and sources.results.cells is not None:
        cells = sources.results.cells
        first = cells.iloc[0]
        seen = {c.removeprefix("env_"): str(first[c]) for c in cells.columns if c.startswith("env_")}
        table = pd.DataFrame(list(seen.items()), columns=["what", "value"])
        sections.append(Section(id="newest", title=f"Environment of {sources.results.name}", table=table))
    return sections


def _failures(results: Results | None) -> Sequence[Section]:
    if results is None or results.cells is None:
        return [Section(id="none", title="No raw run was given", note="Build the site with --run RUN.")]
    failed = results.cells[results.cells.outcome != "ok"]
    if failed.empty:
        return [Section(id="none", title="Every cell of the newest run is ok")]
    return [
        Section(
            id=f"cell-{c.cell}",
            title=f"{c.target}/{c.arm} {c.prompt_set} T={c.temperature:g} c={c.concurrency}: {c.outcome}",
            note=c.reason,
            text=c.log_tail,
        )
        for c in failed.itertuples()
    ]

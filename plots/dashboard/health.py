"""The health page: did every cell succeed, was the machine quiet, did the baseline drift, what was audited."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from harness.report.page import Section as Part
from harness.report.render import section_html
from harness.stats.results import Results
from harness.tables.diagnostics import noise_floor
from plots import style
from plots.dashboard.page import Page, Section, card, grid, lines, pre, table

CERTIFICATE = ("target", "arm", "proposal", "device", "dtype", "verdict", "date", "samples", "smallest_p")
PLACE = ["allocation", "target", "benchmark", "tier", "temperature", "concurrency"]


def page(results: Results | None, certificates: Sequence[dict[str, Any]]) -> Page:
    """As far as a run with rows was given."""
    sections = []
    if results is None or results.cells is None:
        note = "No run with rows was given: build the site with --run RUN."
        sections.append(Section(id="cells", title="Cells", note=note))
    else:
        sections += [_cells(results), *_failures(results.cells), doubts(results), *_drift(results)]
        sections.append(_load(results.cells))
    sections.append(_audits(certificates))
    if results is None or results.cells is None:
        return Page(name="health.html", title="Health", sections=tuple(sections))
    sections.append(_environment(results))
    part = Part(title="Noise between launches", tables=(noise_floor(results),))
    noise = Markup(section_html(part))
    return Page(name="health.html", title="Health", sections=tuple(sections), tail=noise)


def _cells(results: Results) -> Section:
    assert results.cells is not None
    counts = results.cells.outcome.value_counts()
    waiting = sum("not run yet" in why for why in results.holes.values())
    cards = [card(str(outcome), f"{n:,}", "cells") for outcome, n in counts.items()]
    if waiting:
        cards.append(card("not run yet", f"{waiting:,}", "settings of the plan"))
    return Section(id="cells", title="Cells", blocks=(grid(cards),))


def _failures(cells: pd.DataFrame) -> Iterator[Section]:
    failed = cells[cells.outcome != "ok"]
    if failed.empty:
        yield Section(id="failures", title="Failures", note="Every cell that was measured is ok.")
        return
    blocks = []
    for c in failed.itertuples():
        title = (
            f"{style.title(c.arm)}, {c.target}, {c.prompt_set} T = {c.temperature:g} c = {c.concurrency}: {c.outcome}"
        )
        log = pre(c.log_tail) if c.log_tail else Markup("")
        blocks.append(Markup('<details id="cell-{}"><summary>{}</summary><p>{}</p>{}</details>').format(
            c.cell, title, c.reason or "no reason was recorded", log))  # fmt: skip
    yield Section(id="failures", title="Failures", blocks=tuple(blocks))


def _drift(results: Results) -> Iterator[Section]:
    """AR at the opening against AR at the close of each allocation, where it was measured twice."""
    per_cell = results.per_cell
    if per_cell is None or per_cell.empty:
        return
    ar = per_cell[per_cell.arm == "ar"].sort_values("order")
    found = []
    for key, twins in ar.groupby(PLACE, sort=False):
        if len(twins) > 1:
            first, last = twins.throughput.iloc[0], twins.throughput.iloc[-1]
            found.append((*key[:3], f"{key[4]:g}", key[5], first, last, f"{100 * (last / first - 1):+.2f} %"))
    columns = ["allocation", "target", "prompt set", "T", "concurrency", "AR first, tokens/s", "AR last", "drift"]
    note = "AR opens and closes an allocation: a difference between the two is the machine's, not a drafter's."
    if not found:
        note = "AR was not measured twice in any allocation: drift is not known."
    blocks = (table(pd.DataFrame(found, columns=columns)),) if found else ()
    yield Section(id="drift", title="Drift within an allocation", note=note, blocks=blocks)


def _load(cells: pd.DataFrame) -> Section:
    """Every recorded column whose name speaks of load, by allocation."""
    loads = [c for c in cells.columns if c.startswith("env_") and "load" in c]
    known = [c for c in loads if pd.to_numeric(cells[c], errors="coerce").notna().any()]
    if not known:
        return Section(id="load", title="Load of the machine", note="This run did not record it.")
    ok = cells[cells.outcome == "ok"]
    frame = pd.DataFrame(
        {
            "allocation": name,
            "what": column.removeprefix("env_").replace("_", " "),
            "least": values.min(), "median": values.median(), "most": values.max(),
            "cores": str(group["env_cores"].iloc[0]) if "env_cores" in group else "",
        }
        for name, group in ok.groupby("allocation", sort=False)
        for column in known
        if (values := pd.to_numeric(group[column], errors="coerce").dropna()).size
    )  # fmt: skip
    note = "Load average as the system gives it: more than the cores that the run used means that it had neighbours."
    return Section(id="load", title="Load of the machine", note=note, blocks=(table(frame),))


def _audits(certificates: Sequence[dict[str, Any]]) -> Section:
    rows = [{**c.get("attestation", {}), **c} for c in certificates]
    frame = pd.DataFrame(
        [{k: str(row.get(k, ""))[:40] for k in CERTIFICATE} for row in rows], columns=list(CERTIFICATE)
    )
    note = "An arm without a certificate for the weights that a run used is unaudited."
    if not certificates:
        note = "No certificates: specbench audit SWEEP writes them."
    return Section(id="audits", title="Audits", note=note, blocks=(table(frame),) if certificates else ())


def _environment(results: Results) -> Section:
    """What the cells say of the machine: every value that occurs."""
    assert results.cells is not None
    cells = results.cells
    seen = {c.removeprefix("env_"): list(dict.fromkeys(map(str, cells[c]))) for c in cells if c.startswith("env_")}
    frame = pd.DataFrame(
        [(k, "; ".join(v[:3]) + (f" and {len(v) - 3} more" if len(v) > 3 else "")) for k, v in seen.items()],
        columns=["what", "value"],
    )
    return Section(id="environment", title="Environment", blocks=(table(frame),))


def cautions(results: Results) -> list[str]:
    """Doubts of the cells, each once, with how many settings carry it."""
    carriers: dict[str, int] = {}
    for notes in results.cautions.values():
        for note in notes:
            carriers[note] = carriers.get(note, 0) + 1
    return [f"{note} ({n} settings)" if n > 1 else note for note, n in carriers.items()]


def doubts(results: Results) -> Section:
    """What the harness noticed while measuring."""
    found = cautions(results)
    note = "" if found else "None was noticed."
    return Section(id="doubts", title="Doubts", note=note, blocks=(lines(found),) if found else ())

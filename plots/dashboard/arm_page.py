"""A page for each arm: what it is, what proves that it runs, its certificates, its numbers and their history."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from harness.report.page import Report
from harness.report.ranking import Ranked
from harness.report.sentences import percent, where
from harness.stats.estimate import Estimate, Missing
from harness.tables.cell_text import number
from plots import style
from plots.dashboard.history_page import NOTE, Cards, heading
from plots.dashboard.page import Page, Section, grid, lines, slug, table
from sglang_specbench.arms import ARMS, Arm


def name_of(arm: str) -> str:
    """File name."""
    return f"arm-{slug(arm)}.html"


def page(arm: str, report: Report | None, made: Cards, certificates: Sequence[Mapping[str, Any]]) -> Page:
    """Sections without anything to show are left out, but for the certificate: its absence is said."""
    sections = [_what(arm), _proof(arm, certificates)]
    if report is not None:
        sections.append(_numbers(arm, report))
    for place, cards in made.items():
        title = f"History: {heading(place)}"
        own = [card for owner, card in cards if owner == arm]
        if own:
            sections.append(Section(id=slug(title), title=title, note=NOTE, blocks=(grid(own),)))
    about = f"called {arm} in sweeps and tables" if style.title(arm) != arm else ""
    return Page(name=name_of(arm), title=style.title(arm), about=about, sections=tuple(s for s in sections if s))


def _what(arm: str) -> Section:
    if arm not in ARMS:
        return Section(id="what", title="What it is", note="It is not in this version's arm table.")
    row = ARMS[arm]
    approximations = list(row.approximations) or ["none is known"]
    frame = pd.DataFrame(_facts(row), columns=["", "value"])
    blocks = (table(frame, "How SGLang is started for it"), lines([f"Approximation: {a}" for a in approximations]))
    return Section(id="what", title="What it is", blocks=blocks)


def _facts(row: Arm) -> list[tuple[str, str]]:
    facts = [
        ("algorithm", row.algorithm or "autoregressive decoding: no drafter"),
        ("head", row.head),
        ("proposal at T = 0", row.proposal(0)),
        ("proposal at T > 0", row.proposal(1)),
        ("flags", " ".join(row.flags)),
        ("environment", " ".join(f"{k}={v}" for k, v in row.environment(row.proposal(1)).items())),
        ("checkpoint", row.checkpoint),
        ("patches of ours", ", ".join(row.patches)),
        ("needs", ", ".join(row.needs)),
    ]
    return [(name, value) for name, value in facts if value]


def _proof(arm: str, certificates: Sequence[Mapping[str, Any]]) -> Section:
    """Log lines demanded of its server, and its certificates."""
    demanded = list(dict.fromkeys((*ARMS[arm].proof("sampled"), *ARMS[arm].proof("argmax")))) if arm in ARMS else []
    own = [c for c in certificates if c.get("arm") == arm]
    keys = ("target", "proposal", "verdict", "date", "samples")
    frame = pd.DataFrame([{k: str(c.get(k, ""))[:40] for k in keys} for c in own], columns=list(keys))
    note = "" if own else "No certificate: whether it samples from the target's distribution was not audited."
    if arm == "ar":
        note = "AR is the reference that the others are audited against."
    proofs = [f"A CUDA server's log must say: {p}" for p in demanded]
    blocks = (*((table(frame, "Certificates"),) if own else ()), *((lines(proofs),) if proofs else ()))
    return Section(id="proof", title="Proof and certificate", note=note, blocks=blocks)


def _numbers(arm: str, report: Report) -> Section:
    """Its rank and numbers, panel by panel."""
    found = []
    for panel in report.panels:
        for place, rank in enumerate(panel.ranks, 1):
            if rank.setting.arm == arm:
                found.append((where(panel.place, panel.sets), f"{place} of {len(panel.ranks)}", *_texts(rank)))
        found += [(where(panel.place, panel.sets), "-", *[f"no number: {why}"] * 1, *[""] * 4)
                  for lacking, why in panel.lacking if lacking == arm]  # fmt: skip
    columns = ["where", "rank", "speedup over AR", "tokens/s", "tau", "block time, ms", "against the first"]
    note = "" if found else "The newest run does not have it."
    doubts = list(dict.fromkeys(d for p in report.panels for r in p.ranks if r.setting.arm == arm for d in r.doubts))
    blocks = [table(pd.DataFrame(found, columns=columns))] if found else []
    blocks += [lines([f"Doubt: {d}" for d in doubts])] if doubts else []
    return Section(id="numbers", title=f"In {report.name}", note=note, blocks=tuple(blocks))


def _texts(rank: Ranked) -> list[str]:
    numbers = [(rank.speedup, 2), (rank.throughput, 1), (rank.tau, 2), (rank.block_ms, 2)]
    texts = [number(e, d, interval=True) if isinstance(e, Estimate) else "" for e, d in numbers]
    behind = rank.behind.change if rank.behind is not None else None
    told = "" if behind is None or isinstance(behind, Missing) else percent(behind, signed=True)
    return [*texts, told]

"""The page of `specbench selftest`: this machine, what each server said of itself, and whether it was exact.

Markdown, to be pasted into an issue. Pure: everything on it was measured by others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.schema.header import Header
from harness.stats.greedy_match import Equality
from sglang_specbench.arms import ARMS
from sglang_specbench.machine import Machine, why_not

# what a server attests -> how the table's head calls it
SAID = {
    "draft_model": "drafter", "head": "head", "head_captured": "captured", "window": "window",
    "draft_graph_sizes": "graphs", "proposal": "at T>0", "verification": "verification", "patches": "patches",
}  # fmt: skip
OURS = "cpu_"  # patches that every CPU server has: counted, not named


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run of the sweep in one precision."""

    dtype: str
    headers: tuple[Header, ...]
    equal: tuple[Equality, ...]

    @property
    def outcomes(self) -> list[str]:
        return [header.outcome for header in self.headers]


def page(
    machine: Machine, device: str, runs: Sequence[Measured], certificates: Sequence[Mapping[str, Any]], took_s: float
) -> str:
    """The page; ends with a newline. ``took_s`` is of this call: a resumed one has less."""
    lines = [f"# specbench selftest: {verdict(runs, certificates)}", "", *_machine(machine, device, took_s)]
    for run in runs:
        lines += ["", *_servers(run), "", *_greedy(run)]
    return "\n".join([*lines, "", *_audits(certificates), "", *_not_here(machine)]) + "\n"


def verdict(runs: Sequence[Measured], certificates: Sequence[Mapping[str, Any]]) -> str:
    """``all is well``, or what is not."""
    failed = sum(outcome != "ok" for run in runs for outcome in run.outcomes)
    unequal = sum(found.broken for run in runs for found in run.equal)
    doubtful = [c["arm"] for c in certificates if c["verdict"] != "pass"]
    wrong = [f"{failed} cells failed"] * bool(failed) + [f"{unequal} cells differ from AR"] * bool(unequal)
    wrong += [f"no passed audit of {', '.join(doubtful)}"] if doubtful else []
    return "; ".join(wrong) or "all is well"


def _machine(machine: Machine, device: str, took_s: float) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items() if version)
    yield f"- {versions}; Python {machine.python}, {machine.platform}"
    yield f"- served on {device}; GPUs: {'; '.join(machine.gpus) or 'none'}; {machine.cores} cores"
    if machine.toolkit:
        yield f"- CUDA toolkit: {machine.toolkit}"
    yield f"- took {took_s / 60:.1f} min"


def _servers(run: Measured) -> Iterator[str]:
    """A line for each server, in the order in which they ran; an attestation that was refused is shown, too."""
    yield f"## {run.dtype}: what each server said of itself"
    yield ""
    yield f"| arm | cells | tau emitted | {' | '.join(SAID.values())} | outcome |"
    yield "|" + " --- |" * (len(SAID) + 4)
    launches: dict[tuple[int, str], list[Header]] = {}
    for header in sorted(run.headers, key=lambda h: (h.order, h.cell.temperature)):
        launches.setdefault((header.order, header.launch), []).append(header)
    for found in launches.values():
        first = found[0]
        said = [_said(first.attestation, key) for key in SAID]
        wrong = [f"{h.outcome}: {h.reason}" for h in found if h.outcome != "ok"]
        temperatures = ", ".join(f"T={h.cell.temperature:g}" for h in found)
        cells = (f"{first.cell.arm}/{first.cell.proposal}", temperatures, _tau(found), *said, "; ".join(wrong) or "ok")
        yield f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _tau(found: Sequence[Header]) -> str:
    """Tokens that verify blocks emitted over blocks (``tau_emitted``), by the server's own counters."""
    taus = []
    for header in found:
        counted = header.counters
        blocks = counted.get("verify_calls", 0)
        taus.append(f"{(counted['tokens'] - counted['requests']) / blocks:.2f}" if blocks else "")
    return ", ".join(filter(None, taus))


def _said(attestation: Mapping[str, Any], key: str) -> str:
    value = attestation.get(key, "")
    if key == "patches":
        named = [name for name in value or () if not name.startswith((OURS, "bootstrap_"))]
        return ", ".join([*named, f"{len(value) - len(named)} of every server"]) if value else ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _greedy(run: Measured) -> Iterator[str]:
    if run.equal:
        same, compared = sum(f.equal for f in run.equal), sum(f.compared for f in run.equal)
        yield f"Greedy outputs equal to AR's: {same} of {compared} ({len(run.equal)} cells)."
        yield from (f"- {found}" for found in run.equal if found.equal < found.compared)
    cautions = dict.fromkeys(text for header in run.headers for text in header.cautions if "fewer than" not in text)
    yield from (f"- caution: {text}" for text in cautions)


def _audits(certificates: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## Does it sample from the target's distribution"
    yield ""
    for c in certificates:
        doubts = "".join(f"; {reason}" for reason in c.get("reasons", ()))
        dtype = c["attestation"].get("dtype")
        yield f"- {c['arm']} ({c.get('proposal')}, {dtype}): {c['verdict']}, {c['samples']} samples{_plain(doubts)}"
    if not certificates:
        yield "- nothing was audited"


def _not_here(machine: Machine) -> Iterator[str]:
    yield "## Arms that do not run here"
    yield ""
    yield from (f"- {arm.name}: {reason}" for arm in ARMS.values() if (reason := why_not(arm, machine)))


def _plain(text: str) -> str:
    """One line of a table, whatever a server wrote."""
    return " ".join(text.split()).replace("|", "\\|")[:300]

"""Two runs laid over each other: what may be compared, what is missing, and the effects of every arm and setting.

A *setting* is a cell without seed and repeat: they are pooled. What makes two runs unlike (device, threads, prompts,
wording, caps) makes the comparison invalid; the SGLang version, the weights and our own version may differ, because
their effect is what a gate is asked about.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.gate.effects import TauChange, tau_change

if TYPE_CHECKING:
    import pandas as pd

    from harness.store.run import Frames

SETTING = ("prompt_set", "tier", "temperature", "proposal", "concurrency")
ALIKE = ("prompt_version", "max_new_tokens", "ignore_eos", "device", "dtype", "env_device_name", "env_threads")
BROKEN = {"not_attested": 4, "invalid": 4}  # exit code per outcome; every other failure is infrastructure, 5
INFRASTRUCTURE = 5


@dataclass(frozen=True)
class Trouble:
    """Why a comparison cannot be trusted: exit code 4 (invalid) or 5 (infrastructure), and the reason."""

    code: int
    reason: str


def troubles(candidate: "Frames") -> list[Trouble]:
    """Every failed cell of the candidate, worst first."""
    failed = candidate.cells[candidate.cells.outcome != "ok"]
    found = [
        Trouble(
            BROKEN.get(c.outcome, INFRASTRUCTURE),
            f"{c.target}/{c.arm} {c.prompt_set} T={c.temperature:g} c={c.concurrency}: {c.outcome}: {c.reason}",
        )
        for c in failed.itertuples()
        if c.outcome != "missing_set"
    ]
    return sorted(found, key=lambda t: t.code)


def unlike(baseline: "Frames", candidate: "Frames") -> list[Trouble]:
    """Where two runs were not measured alike: key and both values."""
    keys = ["target", "arm", *SETTING]
    old, new = (f.cells[f.cells.outcome == "ok"].drop_duplicates(keys) for f in (baseline, candidate))
    columns = [*keys, *(k for k in ALIKE if k in old and k in new)]
    both = old[columns].merge(new[columns], on=keys, suffixes=("", "_new"))
    if both.empty:
        return [Trouble(4, "no setting was measured by both runs")]
    found = []
    for key in columns[len(keys) :]:
        unequal = both[both[key].astype(str) != both[f"{key}_new"].astype(str)]
        if len(unequal):
            a, b = unequal.iloc[0][[key, f"{key}_new"]]
            found.append(Trouble(4, f"{key.removeprefix('env_')}: baseline {str(a)!r}, candidate {str(b)!r}"))
    return found


def tau_changes(baseline: "Frames", candidate: "Frames", target: str, arm: str) -> dict[str, TauChange]:
    """Setting text -> change of tau, over the prompts that both runs measured."""
    old, new = (prompt_counts(f, target, arm) for f in (baseline, candidate))
    changes = {}
    for setting in sorted(set(old) & set(new)):
        prompts = sorted(set(old[setting]) & set(new[setting]))
        sides = [np.array([side[setting][p] for p in prompts], dtype=float).reshape(-1, 2).T for side in (old, new)]
        if len(prompts) >= 2 and all(s[1].sum() for s in sides):
            keys = [(setting.split(" ")[0], p) for p in prompts]
            changes[setting] = tau_change(keys, (sides[0][0], sides[0][1]), (sides[1][0], sides[1][1]))
    return changes


def prompt_counts(frames: "Frames", target: str, arm: str) -> dict[str, dict[str, tuple[int, int]]]:
    """Setting -> prompt id -> (accepted drafts, verify blocks), summed over turns, seeds and repeats."""
    cells = _ok(frames, target, arm)
    rows = frames.rows[(frames.rows.outcome == "ok") & frames.rows.verify_ct.notna()]
    joined = rows.merge(cells[["cell", "setting"]], on="cell")
    sums = joined.groupby(["setting", "prompt_id"], observed=True)[["correct_drafts", "verify_ct"]].sum()
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for (setting, prompt), correct, blocks in sums.itertuples():
        found.setdefault(setting, {})[prompt] = (int(correct), int(blocks))
    return found


def throughputs(frames: "Frames", target: str, arm: str) -> dict[tuple[str, str], float]:
    """(allocation, setting) -> tokens per second; cells of one arm that an allocation measured twice are averaged."""
    cells = _ok(frames, target, arm)
    tokens = frames.rows.groupby("cell", observed=True).completion_tokens.sum()
    speed = cells.cell.map(tokens).astype(float) / cells.wall_s.astype(float)
    pooled = speed.groupby([cells.allocation, cells.setting]).mean()
    return {(str(a), str(s)): float(v) for (a, s), v in pooled.items()}


def relative(arm: Mapping[tuple[str, str], float], ar: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Speedup over AR of the same allocation and setting; AR has no proposal, so settings are matched without it."""
    plain = {(allocation, _without_proposal(s)): value for (allocation, s), value in ar.items()}
    pairs = {key: (key[0], _without_proposal(key[1])) for key in arm}
    return {key: arm[key] / plain[base] for key, base in pairs.items() if base in plain}


def _without_proposal(setting: str) -> str:
    return " ".join(word for word in setting.split(" ") if word not in ("none", "argmax", "sampled"))


def _ok(frames: "Frames", target: str, arm: str) -> "pd.DataFrame":
    cells = frames.cells
    chosen = cells[(cells.outcome == "ok") & (cells.target == target) & (cells.arm == arm)].copy()
    chosen["setting"] = [
        f"{c.prompt_set}{'/' + c.tier if c.tier else ''} T={c.temperature:g} {c.proposal} c={c.concurrency}"
        for c in chosen.itertuples()
    ]
    return chosen

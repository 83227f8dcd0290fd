"""From a run to its line in the history: the tables' numbers, pooled and by setting, versions, device, noise."""

import hashlib
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness.gate.history import Entry, Point
from harness.gate.match import text_of
from harness.schema.header import Outcome
from harness.stats import noise
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting

if TYPE_CHECKING:
    import pandas as pd


def identity(cells: "pd.DataFrame") -> str:
    """A hash of a run's cells and of when and how long each was measured: the same wherever the folder lies."""
    names = sorted(map(str, zip(cells.cell, cells.started_at, cells.wall_s, strict=True)))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def entry(run: str, results: Results, verdict: str, baseline: Results | None = None) -> Entry:
    """The history entry of one run. ``verdict`` is the gate's over ``baseline``, or "" if it was not judged."""
    assert results.cells is not None
    ok = results.cells[results.cells.outcome == Outcome.OK]
    first = (results.cells if ok.empty else ok).iloc[0]  # a run whose cells all failed has a line without points
    spread = noise.launch_sd(results, "speedup")
    return Entry(
        run=run,
        time=max(results.cells.started_at) or datetime.now(UTC).isoformat(timespec="seconds"),
        commit=str(first.get("env_commit", "")),
        device_name=str(first.get("env_device_name", "")),
        versions={k: str(first.get(f"env_{k}", "")) for k in ("sglang", "torch", "specbench", "driver")},
        noise=spread.value if spread else None,
        verdict=verdict,
        unaudited=dict(results.unaudited),
        identity=identity(results.cells),
        against=Path(baseline.name).name if baseline else "",
        baseline=identity(baseline.cells) if baseline and baseline.cells is not None else "",
        points=tuple(point for setting_values in _by_arm(results).items() for point in _points(*setting_values)),
    )


def said(entry: Entry) -> str:
    """A sentence: what the gate said of a run."""
    if not entry.verdict:
        return "Gate: not judged."
    return f"Gate: {entry.verdict}{f', against {entry.against}' if entry.against else ''}."


def _by_arm(results: Results) -> dict[tuple[str, str, str], dict[Setting, float]]:
    """(target, arm, metric) -> value by setting: tau and speedup, and AR's tokens per second."""
    found: dict[tuple[str, str, str], dict[Setting, float]] = {}
    whole = [s for s in results.settings() if not s.category and s.benchmark != AVERAGE]
    for setting in sorted(whole):
        for metric in ("throughput",) if setting.arm == "ar" else ("tau", "speedup"):
            estimate = results.get(setting, metric)
            if isinstance(estimate, Estimate):
                found.setdefault((setting.target, setting.arm, metric), {})[setting] = estimate.value
    return found


def _points(of: tuple[str, str, str], values: Mapping[Setting, float]) -> Iterable[Point]:
    """A point per setting, and their geometric mean."""
    target, arm, metric = of
    named = {text_of(setting): value for setting, value in values.items()}
    named["pooled"] = math.exp(float(np.mean([math.log(v) for v in values.values()])))
    return [Point(target=target, arm=arm, metric=metric, setting=s, value=v) for s, v in named.items()]

"""From a run to its line in the history: pooled and per-setting numbers, versions, device, noise."""

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from harness.gate.effects import pooled_logs
from harness.gate.history import Entry, Point
from harness.gate.match import prompt_counts, relative, throughputs

if TYPE_CHECKING:
    from harness.store.run import Frames


def entry(run: str, frames: "Frames", verdict: str) -> Entry:
    """The history entry of one run. ``verdict`` is the gate's, or "" if it was not judged."""
    ok = frames.cells[frames.cells.outcome == "ok"]
    first = (frames.cells if ok.empty else ok).iloc[0]  # a run whose cells all failed has a line without points
    arms = sorted(set(zip(ok.target, ok.arm, strict=True)))
    return Entry(
        run=run,
        time=max(frames.cells.started_at) or datetime.now(UTC).isoformat(timespec="seconds"),
        commit=str(first.get("env_commit", "")),
        device_name=str(first.get("env_device_name", "")),
        versions={k: str(first.get(f"env_{k}", "")) for k in ("sglang", "torch", "specbench", "driver")},
        noise=_noise(frames, arms),
        verdict=verdict,
        points=tuple(p for target, arm in arms for p in (*_taus(frames, target, arm), *_speeds(frames, target, arm))),
    )


def _taus(frames: "Frames", target: str, arm: str) -> list[Point]:
    points = []
    for setting, prompts in prompt_counts(frames, target, arm).items():
        correct, blocks = np.array(list(prompts.values()), dtype=float).sum(axis=0)
        points.append(Point(target=target, arm=arm, metric="tau", setting=setting, value=1 + correct / blocks))
    if points:
        mean = math.exp(float(np.mean([math.log(p.value) for p in points])))
        points.append(Point(target=target, arm=arm, metric="tau", setting="pooled", value=mean))
    return points


def _speeds(frames: "Frames", target: str, arm: str) -> list[Point]:
    metric, values = _relative(frames, target, arm)
    logs: dict[str, list[float]] = {}
    for (_, setting), value in values.items():
        logs.setdefault(setting, []).append(math.log(value))
    means = {setting: float(np.mean(found)) for setting, found in sorted(logs.items())}
    if means:
        means["pooled"] = float(np.mean(list(means.values())))
    return [Point(target=target, arm=arm, metric=metric, setting=s, value=math.exp(m)) for s, m in means.items()]


def _relative(frames: "Frames", target: str, arm: str) -> tuple[str, dict[tuple[str, str], float]]:
    """Speedups over AR of the same allocation; for AR its own tokens per second."""
    own = throughputs(frames, target, arm)
    return ("throughput", own) if arm == "ar" else ("speedup", relative(own, throughputs(frames, target, "ar")))


def _noise(frames: "Frames", arms: list[tuple[str, str]]) -> float | None:
    """Pooled sd of an arm's log speedup between allocations; None without A/A repeats."""
    squares, df = 0.0, 0
    for target, arm in arms:
        _, values = _relative(frames, target, arm)
        logs, _ = pooled_logs(values, values)
        if arm != "ar" and len(logs) > 1:
            squares, df = squares + float(((logs - logs.mean()) ** 2).sum()), df + len(logs) - 1
    return math.sqrt(squares / df) if df else None

"""The history as a table for charts: one line per run and number, with change points and the noise band beside it."""

import math

import pandas as pd

from harness.gate.changes import Change, change_points
from harness.gate.history import Entry

COLUMNS = ["run", "time", "commit", "device", "sglang", "target", "arm", "metric", "setting", "value", "low", "high",
           "noise", "verdict", "audited", "line"]  # fmt: skip


def long(entries: list[Entry]) -> pd.DataFrame:
    """One line per point of every entry, in file order; `COLUMNS`, and the setting's parts as columns of their own."""
    lines = [
        (e.run, e.time, e.commit, e.device_name, e.versions.get("sglang", ""), p.target, p.arm, p.metric, p.setting,
         p.value, p.low, p.high, e.noise, e.verdict, _audited(e, p.arm), line)
        for line, e in enumerate(entries)
        for p in e.points
    ]  # fmt: skip
    frame = pd.DataFrame(lines, columns=COLUMNS)
    parts = frame.setting.str.extract(r"^(?P<set>\S+) T=(?P<temperature>\S+) \w+ c=(?P<concurrency>\d+)$")
    frame[["set", "temperature"]] = parts[["set", "temperature"]].fillna("pooled")
    frame["concurrency"] = pd.to_numeric(parts.concurrency)
    return frame


def _audited(entry: Entry, arm: str) -> str:
    """Yes, why not, or that nothing was recorded."""
    return "not recorded" if entry.unaudited is None else entry.unaudited.get(arm, "yes")


def floor(series: pd.DataFrame) -> float:
    """Standard deviation of the log between A/A allocations; 0 for tau, and where no run measured it."""
    median = float(pd.to_numeric(series.noise).median())
    return 0.0 if series.metric.iloc[0] == "tau" or not math.isfinite(median) else median


def changes(series: pd.DataFrame) -> list[Change]:
    """Change points of one series (same device, target, arm, metric, setting), in the order of its lines.

    Without a floor the spread of successive runs is all that is known.
    """
    return change_points([math.log(v) for v in series.value], floor(series))

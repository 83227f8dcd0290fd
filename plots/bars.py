"""Acceptance length and throughput per benchmark and arm, with 95 % intervals over prompts."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from harness.stats.results import Results
from harness.stats.setting import printed
from plots import style

QUANTITIES = {"tau": "acceptance length tau", "throughput": "throughput (tokens/s)"}


def draw(results: Results) -> Figure | None:
    """One row per target and temperature at the lowest concurrency measured; left tau, right throughput."""
    frame = results.frame(*QUANTITIES)
    if frame.empty:
        return None
    frame = frame[frame.value.notna() & frame.seed.isna() & (frame.category == "") & (frame.tier == "")]
    frame = frame[frame.benchmark != "average"]
    frame = frame[frame.concurrency == frame.groupby("target").concurrency.transform("min")]
    panels = [(k, g) for k, g in frame.groupby(["target", "temperature"], sort=False) if (g.quantity == "tau").any()]
    if not panels:
        return None
    figure: Figure
    figure, axes = plt.subplots(len(panels), 2, figsize=(style.WIDTH, 2.2 * len(panels) + 0.4), squeeze=False)
    for row, ((target, temperature), group) in zip(axes, panels, strict=True):
        for axis, (quantity, label) in zip(row, QUANTITIES.items(), strict=True):
            _panel(axis, group[group.quantity == quantity], results, label)
            axis.set_title(f"{target}, T={temperature:g}, concurrency {group.concurrency.iloc[0]}")
    style.legend(figure, axes.flat)
    figure.tight_layout()
    return figure


def _panel(axis: plt.Axes, group: pd.DataFrame, results: Results, label: str) -> None:
    sets = [b for b in results.benchmarks() if b in set(group.benchmark)]
    arms = [a for a in results.arms() if a in set(group.arm)]
    width = 0.8 / max(len(arms), 1)
    for i, arm in enumerate(arms):
        own = group[group.arm == arm].set_index("benchmark").reindex(sets)
        x = np.arange(len(sets)) + (i - (len(arms) - 1) / 2) * width
        doubt = np.vstack([own.value - own.low, own.high - own.value])
        bars = {"yerr": doubt.tolist(), "error_kw": {"linewidth": 0.7}} if np.isfinite(doubt).any() else {}
        axis.bar(x, own.value, width, color=style.colour(arm), hatch=style.hatch(arm), label=style.title(arm), **bars)
    axis.set_xticks(
        range(len(sets)),
        [printed(b) for b in sets],
        rotation=30 if len(sets) > 4 else 0,
        ha="right" if len(sets) > 4 else "center",
    )
    axis.grid(axis="x", visible=False)
    axis.set_ylabel(label)

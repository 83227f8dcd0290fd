"""tau against block time, with lines of equal throughput: does an arm win by accepting more or by costing less.

Throughput of one stream is tau / block time, so a line through the origin is one speed.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from harness.stats.estimate import Estimate
from harness.stats.headcost import eligible, place
from harness.stats.results import Results
from plots import style


def draw(results: Results) -> Figure | None:
    """Greedy, concurrency 1: mean tau over the benchmarks that head costs use, against the median block time."""
    targets = [t for t in results.targets() if _points(results, t)]
    if not targets:
        return None
    figure: Figure
    figure, axes = plt.subplots(1, len(targets), figsize=(style.WIDTH, 2.8), squeeze=False)
    for axis, target in zip(axes[0], targets, strict=True):
        points = pd.DataFrame(_points(results, target), columns=["arm", "block", "tau"])
        axis.margins(0.25)
        for point in points.itertuples():
            axis.plot(point.block, point.tau, **{**style.line(point.arm), "linestyle": "none", "markersize": 6})
            axis.annotate(
                style.title(point.arm), (point.block, point.tau), xytext=(4, 4), textcoords="offset points", fontsize=7
            )
        _iso(axis, points)
        axis.set_xlabel("median block time (ms)")
        axis.set_ylabel("mean tau")
        axis.set_title(f"{target}, greedy (grey: tokens/s)")
    figure.tight_layout()
    return figure


def _points(results: Results, target: str) -> list[tuple[str, float, float]]:
    points = []
    for arm in results.arms(target):
        block = results.get(place(target, arm), "median_block_ms")
        taus = [
            results.get(s, "tau") for s in results.settings() if s.target == target and s.arm == arm and eligible(s)
        ]
        values = [t.value for t in taus if isinstance(t, Estimate)]
        if isinstance(block, Estimate) and values:
            points.append((arm, block.value, float(np.mean(values))))
    return points


def _iso(axis: plt.Axes, points: pd.DataFrame) -> None:
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    speeds = points.tau / points.block * 1000
    spread = max(float(speeds.max() - speeds.min()), 0.02 * float(speeds.mean()))
    for speed in np.linspace(speeds.min() - 0.2 * spread, speeds.max() + 0.2 * spread, 5):
        x = np.array([left, right])
        axis.plot(x, speed * x / 1000, color="#bbbbbb", linewidth=0.6, zorder=0)
        at = min(right, top * 1000 / speed)
        axis.annotate(f"{speed:.0f}", (at, speed * at / 1000), fontsize=6, color="#777777", ha="right", va="top")
    axis.set_xlim(left, right)
    axis.set_ylim(bottom, top)

"""Speedup against concurrency, one panel per prompt set and tier, lines per arm, with intervals."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from harness.stats.results import Results
from harness.stats.setting import TIERS, printed
from plots import style


def draw(results: Results) -> Figure | None:
    """None unless some setting was measured at two concurrencies or more."""
    frame = results.frame("speedup")
    if frame.empty:
        return None
    frame = frame[frame.value.notna() & frame.seed.isna() & (frame.category == "") & (frame.benchmark != "average")]
    groups = frame.groupby(["target", "benchmark", "tier", "temperature"], sort=False)
    panels = [(key, group) for key, group in groups if group.concurrency.nunique() > 1]
    if not panels:
        return None
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure: Figure
    figure, axes = plt.subplots(rows, columns, figsize=(style.WIDTH, 2.1 * rows + 0.4), squeeze=False, sharex=True)
    for axis, (key, group) in zip(axes.flat, panels, strict=False):
        _panel(axis, key, group, results.arms(key[0]))
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    style.legend(figure, axes.flat)
    figure.tight_layout()
    return figure


def _panel(axis: plt.Axes, key: tuple[str, str, str, float], group: pd.DataFrame, arms: list[str]) -> None:
    target, benchmark, tier, temperature = key
    for arm in arms:
        points = group[group.arm == arm].sort_values("concurrency")
        if len(points):
            axis.plot(points.concurrency, points.value, **style.line(arm))
            axis.fill_between(
                points.concurrency, points.low, points.high, color=style.colour(arm), alpha=0.15, linewidth=0
            )
    axis.axhline(1, color="black", linewidth=0.6)
    axis.set_xscale("log", base=2)
    ticks = sorted(group.concurrency.unique())
    axis.set_xticks(ticks, [str(t) for t in ticks])
    axis.set_title(f"{target} {printed(benchmark)} {TIERS.get(tier, tier)} T={temperature:g}".replace("  ", " "))
    axis.set_xlabel("concurrency")
    axis.set_ylabel("speedup over AR")

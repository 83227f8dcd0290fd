"""Survival curves: the share of verify blocks that accept slot i, per arm, pooled over what each panel names."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from harness.stats.cell_draws import SURVIVAL
from harness.stats.results import Results
from harness.stats.setting import printed
from plots import style


def draw(results: Results) -> Figure | None:
    """One panel per target, benchmark and temperature at the lowest concurrency. None without histograms."""
    frame = results.frame(*SURVIVAL)
    if frame.empty:
        return None
    frame = frame[frame.value.notna() & frame.seed.isna() & (frame.category == "") & (frame.tier == "")].copy()
    frame = frame[frame.concurrency == frame.groupby("target").concurrency.transform("min")]
    frame["slot"] = frame.quantity.str[1:].astype(int)
    panels = list(frame.groupby(["target", "benchmark", "temperature"], sort=False))
    if not panels:
        return None
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure: Figure
    figure, axes = plt.subplots(
        rows, columns, figsize=(style.WIDTH, 2.1 * rows + 0.4), squeeze=False, sharex=True, sharey=True
    )
    for axis, ((target, benchmark, temperature), group) in zip(axes.flat, panels, strict=False):
        for arm in results.arms(target):
            own = group[group.arm == arm].sort_values("slot")
            if len(own):
                axis.plot(own.slot, own.value, **{**style.line(arm), "markersize": 2.5})
                axis.fill_between(own.slot, own.low, own.high, color=style.colour(arm), alpha=0.12, linewidth=0)
        axis.set_title(f"{target} {printed(benchmark)} T={temperature:g}")
        axis.set_xlabel("slot i")
        axis.set_ylabel("P(slot i accepted)")
        axis.set_ylim(0, 1)
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    style.legend(figure, axes.flat)
    figure.tight_layout()
    return figure

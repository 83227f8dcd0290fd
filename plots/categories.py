"""Per-category heat map: tau of each arm by prompt category, relative to the DFlash control, the numbers written in."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from harness.stats.results import Results
from plots import style

CONTROL = "dflash"


def draw(results: Results) -> Figure | None:
    """One panel per target, prompt set and temperature. None if no set has categories."""
    frame = results.frame("tau")
    if frame.empty:
        return None
    frame = frame[frame.value.notna() & frame.seed.isna() & (frame.category != "")]
    panels = list(frame.groupby(["target", "benchmark", "temperature", "concurrency"], sort=False))
    panels = [(k, g) for k, g in panels if k[3] == frame[frame.target == k[0]].concurrency.min()]
    if not panels:
        return None
    height = sum(0.22 * g.category.nunique() + 0.9 for _, g in panels)
    ratios = [g.category.nunique() + 3 for _, g in panels]
    figure: Figure
    figure, axes = plt.subplots(len(panels), 1, figsize=(style.WIDTH, height), squeeze=False, height_ratios=ratios)
    for axis, ((target, benchmark, temperature, _), group) in zip(axes[:, 0], panels, strict=True):
        table = group.pivot_table(index="category", columns="arm", values="value")
        table = table[[a for a in results.arms(target) if a in table]]
        _panel(axis, table)
        axis.set_title(f"{target} {benchmark} T={temperature:g}: tau (colour: change against DFlash)")
    figure.tight_layout()
    return figure


def _panel(axis: plt.Axes, table: pd.DataFrame) -> None:
    base = table[CONTROL] if CONTROL in table else table.mean(axis=1)
    relative = table.div(base, axis=0) - 1
    reach = max(float(relative.abs().max().max()), 1e-9)
    axis.imshow(relative, cmap="PuOr_r", vmin=-reach, vmax=reach, aspect="auto")
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            dark = abs(relative.iat[row, column]) > 0.6 * reach
            axis.text(column, row, f"{table.iat[row, column]:.2f}", ha="center", va="center", fontsize=7,
                      color="white" if dark else "black")  # fmt: skip
    axis.set_xticks(range(table.shape[1]), [style.title(a) for a in table.columns], rotation=20, ha="right")
    axis.set_yticks(range(table.shape[0]), table.index)
    axis.grid(visible=False)

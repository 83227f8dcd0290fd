"""The measured noise floor: how far A/A launches of one arm lie apart, beside the 1 % band that the paper uses."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from harness.stats.results import Results
from plots import style

KEYS = ["target", "arm", "benchmark", "tier", "temperature", "concurrency", "seed"]


def draw(results: Results) -> Figure | None:
    """Relative throughput of every repeat against the mean of its group, per arm. None without repeats."""
    cells = results.per_cell
    if cells is None or cells.empty:
        return None
    groups = cells.groupby(KEYS, dropna=False).throughput
    relative = 100 * (cells.throughput / groups.transform("mean") - 1)
    repeated = groups.transform("size") > 1
    if not repeated.any():
        return None
    figure: Figure
    figure, axis = plt.subplots(figsize=(style.WIDTH, 2.4))
    arms = [a for a in results.arms() if a in set(cells.arm[repeated])]
    for x, arm in enumerate(arms):
        values = relative[repeated & (cells.arm == arm)]
        jitter = np.linspace(-0.25, 0.25, len(values)) if len(values) > 1 else [0]
        axis.plot(x + np.asarray(jitter), values, ".", color=style.colour(arm), markersize=4)
    axis.axhspan(-1, 1, color="#999999", alpha=0.2, linewidth=0, label="1 % band")
    reach = float(np.percentile(np.abs(relative[repeated]), 95))
    for sign in (-1, 1):
        axis.axhline(
            sign * reach, color="black", linewidth=0.8, linestyle="--", label="95 % of A/A" if sign > 0 else None
        )
    axis.set_xticks(range(len(arms)), [style.title(a) for a in arms], rotation=20, ha="right")
    axis.set_ylabel("throughput against group mean (%)")
    axis.legend(loc="upper right", ncols=2)
    figure.tight_layout()
    return figure

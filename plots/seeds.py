"""Seed spread: every seed's value as a point, their mean as a bar, per arm and benchmark at temperature 1."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from harness.stats.results import Results
from harness.stats.setting import printed
from plots import style


def draw(results: Results) -> Figure | None:
    """tau, relative to the mean over seeds, in per cent. The paper prints mean and deviation: those become a bar.

    None unless some setting has two seeds or more (or a printed deviation).
    """
    frame = results.frame("tau", "tau_sd")
    if frame.empty:
        return None
    frame = frame[frame.value.notna() & (frame.category == "") & (frame.benchmark != "average")]
    keys = ["target", "arm", "benchmark", "temperature", "concurrency", "tier"]
    means = frame[(frame.quantity == "tau") & frame.seed.isna()].set_index(keys).value
    spread = frame[frame.quantity == "tau_sd"].set_index(keys).value
    shared = spread.index.intersection(means.index)
    if not len(shared):
        return None
    seeds = frame[(frame.quantity == "tau") & frame.seed.notna()].set_index(keys)
    targets = list(dict.fromkeys(k[0] for k in shared))
    figure: Figure
    figure, axes = plt.subplots(len(targets), 1, figsize=(style.WIDTH, 2.2 * len(targets)), squeeze=False)
    for axis, target in zip(axes[:, 0], targets, strict=True):
        labels = []
        for x, key in enumerate(k for k in shared if k[0] == target):
            percent = 100 * float(spread[key]) / float(means[key])
            axis.errorbar(x, 0, yerr=percent, color=style.colour(key[1]), capsize=2, marker="_", linestyle="none")
            if key in seeds.index:
                values = seeds.loc[[key]].value
                axis.plot(
                    [x] * len(values), 100 * (values / means[key] - 1), ".", color=style.colour(key[1]), markersize=3
                )
            labels.append(f"{style.title(key[1])} {printed(key[2])}")
        axis.set_xticks(range(len(labels)), labels, rotation=90, fontsize=5)
        axis.set_ylabel("tau against its mean (%)")
        axis.set_title(f"{target}: one sample standard deviation over seeds")
    figure.tight_layout()
    return figure

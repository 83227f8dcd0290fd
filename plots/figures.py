"""The figures by name. A figure is a function from `Results` to a drawing, or to None where the run lacks its data."""

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from harness.stats.results import Results
from plots import bars, categories, concurrency, head_cost, noise, prediction, seeds, survival, tradeoff

FIGURES: Mapping[str, tuple[Callable[[Results], Figure | None], str]] = {
    "head_cost": (head_cost.draw, "needs dflash and another block arm, greedy, at concurrency 1"),
    "concurrency": (concurrency.draw, "needs one setting at two concurrencies"),
    "bars": (bars.draw, "needs a speculative arm"),
    "survival": (survival.draw, "needs accepted-draft histograms"),
    "categories": (categories.draw, "needs a prompt set with categories"),
    "tradeoff": (tradeoff.draw, "needs dflash and another block arm, greedy, at concurrency 1"),
    "seeds": (seeds.draw, "needs two seeds at temperature 1"),
    "prediction": (prediction.draw, "needs AR beside a speculative arm"),
    "noise": (noise.draw, "needs A/A repeats"),
}

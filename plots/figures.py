"""The figures by name. A figure is a function from `Results` to a drawing, or to None where the run lacks its data;
beside it stands what would fill it, in words of a sweep file.
"""

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from harness.stats.results import Results
from plots import bars, categories, concurrency, head_cost, noise, prediction, seeds, survival, tradeoff

FIGURES: Mapping[str, tuple[Callable[[Results], Figure | None], str]] = {
    "head_cost": (head_cost.draw, "add the arm dflash and another block arm at T = 0 and concurrency 1"),
    "concurrency": (concurrency.draw, "list two values or more under concurrency in a panel"),
    "bars": (bars.draw, "add a speculative arm to a panel"),
    "survival": (survival.draw, "measure a speculative arm: printed numbers have no histograms"),
    "categories": (categories.draw, "add a prompt set with categories: speed-qualitative"),
    "tradeoff": (tradeoff.draw, "add the arm dflash and another block arm at T = 0 and concurrency 1"),
    "seeds": (seeds.draw, "list two seeds or more and temperature 1"),
    "prediction": (prediction.draw, "add the arm ar beside a speculative arm"),
    "noise": (noise.draw, "set repeats = 2 or more"),
}

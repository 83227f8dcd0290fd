"""The measured noise floor: how far the same arm, launched again, is from itself.

A/A cells are ok cells of one setting and seed that differ in the repeat only (fresh launches, same device). Their log
ratios, pooled over everything that shares target, temperature and concurrency, give a launch-to-launch standard
deviation s; the floor is the relative difference that 95 % of A/A pairs stay under, ``t(0.975, df) * sqrt(2) * s``.
AR counts as one arm; its closing bracket in an allocation is a repeat too, but for a server that somebody else started:
there both are one process, a moment apart.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import chi2, t

from harness.schema.header import BY_CALL
from harness.stats.estimate import LEVEL, Estimate, Missing
from harness.stats.results import Results
from harness.stats.setting import Setting

PLACE = ["target", "temperature", "concurrency"]  # one floor each
CELL = [*PLACE, "arm", "benchmark", "tier", "seed"]  # A/A cells agree in these
TAIL = (1 - LEVEL / 100) / 2


def groups(results: Results, quantity: str) -> "pd.DataFrame":
    """One line per ok cell that has a twin: the `CELL` columns, repeat, value, and ``deviation`` = ln(value / mean).

    This is the figure's data. Empty without A/A cells (and for the paper, which publishes none).
    """
    cells = results.per_cell
    if cells is None or cells.empty:
        return pd.DataFrame(columns=[*CELL, "repeat", "value", "deviation"])
    once = cells[~(cells.allocation.str.contains(BY_CALL) & cells.duplicated([*CELL, "allocation"]))]
    found = once[[*CELL, "repeat", quantity]].rename(columns={quantity: "value"}).dropna(subset="value")
    logs = np.log(found.value).groupby([found[c] for c in CELL])
    found["deviation"] = np.log(found.value) - logs.transform("mean")
    return found[logs.transform("size") > 1].reset_index(drop=True)


def floor(deviations: "pd.Series[float]", sets: int) -> Estimate:
    """The floor from pooled log deviations of ``sets`` groups of A/A cells; interval from the chi-square of s.

    n = degrees of freedom.
    """
    df = len(deviations) - sets
    squares = float((deviations**2).sum())
    scale = float(t.ppf(1 - TAIL, df)) * np.sqrt(2)
    low, high = (scale * np.sqrt(squares / chi2.ppf(p, df)) for p in (1 - TAIL, TAIL))
    method = f"t(0.975, {df}) sqrt(2) s of log {deviations.name} over {sets} sets of A/A cells"
    return Estimate(float(scale * np.sqrt(squares / df)), float(low), float(high), df, method)


def launch_sd(results: Results, quantity: str) -> Estimate | None:
    """Standard deviation of log ``quantity`` between launches, pooled over all A/A cells but AR's; None without any."""
    twins = groups(results, quantity)
    twins = twins[twins.arm != "ar"]
    if twins.empty:
        return None
    df = len(twins) - twins.groupby(CELL).ngroups
    method = f"s of log {quantity} over A/A cells"
    return Estimate(float(np.sqrt((twins.deviation**2).sum() / df)), None, None, df, method)


def floors(results: Results, quantity: str) -> dict[tuple[str, float, int], Estimate]:
    """Noise floor (relative) per (target, temperature, concurrency)."""
    return {place: floor(d.rename(quantity), sets) for place, d, sets in _pooled(results, quantity)}


def _pooled(results: Results, quantity: str) -> Iterator[tuple[tuple[str, float, int], "pd.Series[float]", int]]:
    for place, twins in groups(results, quantity).groupby(PLACE):
        target, temperature, concurrency = place
        yield (str(target), float(temperature), int(concurrency)), twins.deviation, twins.groupby(CELL).ngroups


def floor_of(found: dict[tuple[str, float, int], Estimate], setting: Setting) -> Estimate | Missing:
    """The floor that applies to a setting."""
    place = (setting.target, setting.temperature, setting.concurrency)
    return found.get(place, Missing("no A/A cells at this target, temperature and concurrency"))

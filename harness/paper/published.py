"""The paper's printed numbers (arXiv 2608.20530) as the `Results` of a run named ``paper``.

A printed number's interval is its rounding: 7.56 lies in [7.555, 7.565]. Its method names the table and the estimator.
Tables 12 to 15 and 17 are not in our copy: what they hold is missing here, with that reason. Block times are not
printed; they are derived here from the rounded tau and throughput, and say so (see also ``oracle``).
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np

from harness.stats import headcost
from harness.stats.estimate import Draws, Estimate, from_draws
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, BENCHMARKS, TIERS, Setting
from sglang_specbench.arms import ARMS

NAME = "paper"
REASON = "not published, or not in our copy of the paper"
ESTIMATOR = (
    "the paper does not say which of three acceptance lengths its tau is: docs/acceptance.md, how far it matters"
)
LABELS = {
    "tau": "block-weighted, bonus counted",
    "tau_walk": "block-weighted, bonus counted, greedy walk",
    "throughput": "output tokens/s",
    "speedup": "throughput / AR throughput",
    "tau_change_pct": "100 (exact path / greedy walk - 1)",
    "head_ms": "median block time - DFlash's",
    "head_share_pct": "100 * head / block time",
    "tau_sd": "sample standard deviation over seeds 42, 43, 44",
    "throughput_sd": "sample standard deviation over seeds 42, 43, 44",
}
COLUMNS = {
    "throughput_tps": "throughput",
    "head_ms": "head_ms",
    "share_of_block_pct": "head_share_pct",
    "tau": "tau",
}
SET = {title: name for name, title in BENCHMARKS.items()} | {"Alpaca": "alpaca"}
TIER = {title: name for name, title in TIERS.items()}
ARM = {arm.title: name for name, arm in ARMS.items()}
Line = dict[str, str]
Found = Iterator[tuple[Setting, str, str, int]]  # setting, quantity, text as printed, table


def rows(name: str) -> list[Line]:
    """The lines of one table, e.g. ``rows("table04_configuration")``, as printed."""
    text = (files("harness.paper") / "printed" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def results() -> Results:
    """Every printed number. The same object each time: do not change it."""
    found = Results(name=NAME, default_reason=REASON, notes=(ESTIMATOR,))
    for setting, quantity, text, table in _all():
        if (setting, quantity) not in found.values:
            found.put(setting, quantity, _estimate(text, quantity, table))
    _derive(found)
    return found


def _derive(found: Results) -> None:
    """Block times, tau / throughput, and their medians over benchmarks."""
    method = "tau / throughput, both as printed"
    for setting in found.settings():
        tau, rate = found.get(setting, "tau"), found.get(setting, "throughput")
        if isinstance(tau, Estimate) and isinstance(rate, Estimate) and setting.benchmark != AVERAGE:
            found.put(setting, "block_ms", quotient(tau, rate, 1000, method))
    blocks = block_draws(found)
    for setting, draws in headcost.head_costs(blocks).items():
        found.put(setting, "median_block_ms", from_draws(draws["median_block_ms"], 0, f"median of {method}"))


def block_draws(paper: Results) -> dict[tuple[Setting, str], Draws]:
    """The derived block times as `headcost.head_costs` takes them: one allocation, no replicates."""
    found = [(s, e) for (s, q), e in paper.values.items() if q == "block_ms"]
    return {(s, NAME): np.array([e.value]) for s, e in found if isinstance(e, Estimate)}


def quotient(top: Estimate, bottom: Estimate, scale: float, method: str) -> Estimate:
    """``scale * top / bottom`` with the bounds that both roundings allow."""
    (a, b), (c, d) = bounds(top), bounds(bottom)
    return Estimate(scale * top.value / bottom.value, scale * a / d, scale * b / c, 0, method)


def bounds(printed: Estimate) -> tuple[float, float]:
    """What a printed number may have been before it was rounded."""
    assert printed.low is not None
    assert printed.high is not None
    return printed.low, printed.high


def _estimate(text: str, quantity: str, table: int) -> Estimate:
    decimals = len(text.partition(".")[2])
    half = 0.5 * 10**-decimals
    value = float(text)
    return Estimate(value, value - half, value + half, 0, f"printed in Table {table}: {LABELS[quantity]}")


def _all() -> Found:
    yield from _pairs("table05_tau_throughput_8b", 5)
    yield from _pairs("table06_tau_throughput_4b", 6)
    yield from _pairs("table07_argmax_t1", 7)
    yield from _pairs("table08_speed_categories_8b", 8)
    yield from _pairs("table09_speed_categories_4b", 9)
    for line in rows("table01_speedup"):
        yield _setting(line), COLUMNS.get(line["metric"], line["metric"]), line["value"], 1
    for line in rows("table02_concurrency"):
        place = replace(_setting(line | {"benchmark": line["isl"], "temperature": "0"}), tier=TIER[line["tier"]])
        yield place, "speedup", line["value"], 2
    yield from _pairs("table03_head_cost", 3)
    yield from _seeds()
    yield from _decode_rule()


def _setting(line: Line) -> Setting:
    """Where a line's number stands; an argmax proposal at T=1 is the arm of that name."""
    temperature = float(line.get("temperature", 0))
    arm = ARM[line["arm"]]
    if temperature and line.get("proposal") == "argmax" and f"{arm}-argmax" in ARMS:
        arm = f"{arm}-argmax"
    category = line.get("category", "")
    return Setting(
        target=line["target"],
        arm=arm,
        benchmark="speed-qualitative" if category else SET[line.get("benchmark", BENCHMARKS[AVERAGE])],
        temperature=temperature,
        concurrency=int(line.get("concurrency", 1)),
        category=category.lower(),
    )


def _pairs(name: str, table: int) -> Found:
    for line in rows(name):
        for column, quantity in COLUMNS.items():
            if line.get(column):
                yield _setting(line), quantity, line[column], table


def _seeds() -> Found:
    for line in rows("table10_11_seed_spread"):
        table = 10 if line["target"] == "Qwen3-8B" else 11
        quantity = COLUMNS[line["metric"]]
        yield _setting(line), quantity, line["mean"], table
        yield _setting(line), f"{quantity}_sd", line["sample_std"], table


def _decode_rule() -> Found:
    for line in rows("table16_decode_rule"):
        walk = Setting(target=line["target"], arm="lilicorr", benchmark=SET[line["benchmark"]], temperature=0.0)
        yield walk, "tau_walk", line["tau_greedy_walk"], 16
        yield walk.of("lilicorr-exact"), "tau", line["tau_exact_path"], 16
        yield walk.of("lilicorr-exact"), "tau_change_pct", line["delta_pct"], 16

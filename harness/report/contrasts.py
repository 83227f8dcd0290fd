"""Arm against arm within a run: tokens a second, tokens a block and blocks a second, per prompt set and on average.

Both arms ran the same prompts, so their draws share the resamples (``harness.stats.resample``) and the interval is that
of the paired difference. It knows prompts, not launches: how far a launch lies from the next is the noise floor, and a
difference counts only where the whole interval lies beyond it (1 % at least), and arms are equal only where it lies
within 1 %. Between printed numbers the interval is
what their rounding leaves open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.stats import noise
from harness.stats.blocks import QUANTITY, block_draws, blocks_per_s
from harness.stats.contrast import Told, told
from harness.stats.estimate import Draws, Estimate, Missing, from_draws
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting, table_order
from harness.stats.ties import BAND

Verdict = Told | Literal["not measured"]
QUANTITIES = ("throughput", "tau", QUANTITY)
ROUNDED = "interval: what the rounding of both printed numbers leaves open"


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """``change`` = 100 (first / second - 1), per cent; ``setting`` is the first arm's. ``band`` is in per cent."""

    setting: Setting
    rival: str
    quantity: str
    first: Estimate | Missing
    second: Estimate | Missing
    change: Estimate | Missing
    band: float
    verdict: Verdict
    reason: str


def contrasts(results: Results, first: str, second: str) -> list[Contrast]:
    """Every place that either arm has, averages last; categories aside."""
    places = {s.of("") for s in results.settings() if s.arm in (first, second) and not s.category}
    floors = {q: noise.floors(results, q) for q in ("throughput", "tau")}
    return [
        contrast(results, place.of(first), second, quantity, floors)
        for place in sorted(places, key=table_order)
        for quantity in (QUANTITIES if "ar" not in (first, second) else QUANTITIES[:1])
        if _has(results, place.of(first), quantity) or _has(results, place.of(second), quantity)
    ]


def contrast(
    results: Results,
    setting: Setting,
    rival: str,
    quantity: str,
    floors: dict[str, dict[tuple[str, float, int], Estimate]],
) -> Contrast:
    """One place and quantity."""
    a, b = (value(results, s, quantity) for s in (setting, setting.of(rival)))
    change = _change(results, setting, rival, quantity, a, b)
    floor = noise.floor_of(floors["tau" if quantity == "tau" else "throughput"], setting)
    width = floor.value if isinstance(floor, Estimate) else 0.0
    verdict: Verdict
    verdict, reason = ("not measured", change.reason) if isinstance(change, Missing) else told(change, width)
    if isinstance(floor, Missing) and quantity != "tau" and results.cells is not None and verdict != "not measured":
        reason += "; noise between launches not measured"
    return Contrast(
        setting=setting, rival=rival, quantity=quantity, first=a, second=b, change=change, band=100 * max(BAND, width),
        verdict=verdict, reason=reason,
    )  # fmt: skip


def value(results: Results, setting: Setting, quantity: str) -> Estimate | Missing:
    """Of a setting; blocks a second are derived."""
    return blocks_per_s(results, setting) if quantity == QUANTITY else results.get(setting, quantity)


def averages(results: Results, found: Sequence[Contrast]) -> list[Contrast]:
    """Of a list of contrasts those that stand for a whole panel: averages, or the one set where there is but one."""
    several = {t: len(results.benchmarks(t)) > 1 for t in results.targets()}
    return [
        c
        for c in found
        if not c.setting.tier and (c.setting.benchmark == AVERAGE or not several.get(c.setting.target, False))
    ]


def _change(
    results: Results, setting: Setting, rival: str, quantity: str, a: Estimate | Missing, b: Estimate | Missing
) -> Estimate | Missing:
    if isinstance(a, Missing):
        return Missing(f"{setting.arm}: {a.reason}")
    if isinstance(b, Missing):
        return Missing(f"{rival}: {b.reason}")
    method = f"100 (first / second - 1) of {quantity}"
    first, second = (_draws(results, s, quantity) for s in (setting, setting.of(rival)))
    if first is not None and second is not None:
        return from_draws(100 * (first / second - 1), min(a.n, b.n), method)
    percent = 100 * (a.value / b.value - 1)
    if results.cells is not None or a.low is None or a.high is None or b.low is None or b.high is None:
        return Estimate(percent, None, None, min(a.n, b.n), method)
    low, high = 100 * (a.low / b.high - 1), 100 * (a.high / b.low - 1)
    return Estimate(percent, low, high, 0, f"{method}; {ROUNDED}")


def _draws(results: Results, setting: Setting, quantity: str) -> Draws | None:
    return block_draws(results, setting) if quantity == QUANTITY else results.draws.get((setting, quantity))


def _has(results: Results, setting: Setting, quantity: str) -> bool:
    own = "block_ms" if quantity == QUANTITY and setting.benchmark != AVERAGE else quantity
    own = "throughput" if own == QUANTITY else own
    return (setting, own) in results.values or setting in results.holes

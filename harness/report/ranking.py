"""Arms in the order of their speed, panel by panel: a target at one temperature, concurrency and mean of prompt sets.

An arm's place is given by its speedup over AR of the same allocation, or by its tokens a second where some arm has no
speedup. One that failed its audit is no drafter: it stands last, whatever its speed. Beside each stands how far it is
from the first, paired by prompts, so that a rank is not read as a difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.report.contrasts import Contrast, contrast, value
from harness.stats import noise
from harness.stats.blocks import QUANTITY
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting

Number = Estimate | Missing
FAILED = "FAILED"
EXACT = {"": "audited", "unaudited": "unaudited", "inconclusive": "inconclusive", "fail": FAILED}


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One arm. ``behind`` is its speed against the first arm's (None for the first); ``badge`` is about exactness."""

    setting: Setting
    speedup: Number
    throughput: Number
    tau: Number
    block_ms: Number
    behind: Contrast | None
    badge: str
    doubts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RankedPanel:
    """``place`` names no arm; ``lacking`` are arms without a speed here, and why."""

    place: Setting
    sets: int
    ranks: tuple[Ranked, ...]
    lacking: tuple[tuple[str, str], ...]

    @property
    def drafted(self) -> tuple[Ranked, ...]:
        """Without AR."""
        return tuple(r for r in self.ranks if r.setting.arm != "ar")


def panels(results: Results) -> list[RankedPanel]:
    """In the order of targets, temperatures and concurrency; tiered prompt sets aside."""
    return [_panel(results, place, sets) for place, sets in _places(results)]


def _places(results: Results) -> Iterator[tuple[Setting, int]]:
    """Where all prompt sets of a target were measured their average, elsewhere each set by itself."""
    whole = [s for s in results.settings() if not s.tier and not s.category and s.benchmark != AVERAGE]
    for target in results.targets():
        everything = results.benchmarks(target)
        own = [s for s in whole if s.target == target]
        for t, c in sorted({(s.temperature, s.concurrency) for s in own}):
            here = {s.benchmark for s in own if (s.temperature, s.concurrency) == (t, c)}
            sets = [b for b in everything if b in here]
            average = len(sets) > 1 and sets == everything
            for benchmark in [AVERAGE] if average else sets:
                place = Setting(target=target, arm="", benchmark=benchmark, temperature=t, concurrency=c)
                yield place, len(sets) if average else 1


def _panel(results: Results, place: Setting, sets: int) -> RankedPanel:
    arms = [a for a in results.arms(place.target) if _planned(results, place, a)]
    speeds = {a: results.get(place.of(a), "throughput") for a in arms}
    found = [a for a in arms if isinstance(speeds[a], Estimate)]
    order = sorted(found, key=lambda a: (badge(results, a) == FAILED, -_score(results, place, a, found)))
    floors = {q: noise.floors(results, q) for q in ("throughput", "tau")}
    ranks = []
    for arm in order:
        setting = place.of(arm)
        behind = contrast(results, setting, order[0], "throughput", floors) if arm != order[0] else None
        ranks.append(
            Ranked(
                setting=setting,
                speedup=results.get(setting, "speedup"),
                throughput=speeds[arm],
                tau=results.get(setting, "tau"),
                block_ms=_block_ms(results, setting),
                behind=behind,
                badge=badge(results, arm),
                doubts=_doubts(results, setting),
            )
        )
    lacking = tuple((a, s.reason) for a, s in speeds.items() if isinstance(s, Missing))
    return RankedPanel(place=place, sets=sets, ranks=tuple(ranks), lacking=lacking)


def _planned(results: Results, place: Setting, arm: str) -> bool:
    """Was the arm's speed measured here, or was it to be."""
    own = [s for s in results.settings() if s.arm == arm and not s.tier and not s.category]
    same = [s for s in own if s in results.holes or (s, "throughput") in results.values]
    near = [s for s in same if (s.target, s.temperature, s.concurrency) == _key(place)]
    return any(place.benchmark in (AVERAGE, s.benchmark) for s in near)


def _key(place: Setting) -> tuple[str, float, int]:
    return place.target, place.temperature, place.concurrency


def _score(results: Results, place: Setting, arm: str, found: list[str]) -> float:
    """What the order goes by; AR's speedup is one."""
    ratios = {a: results.get(place.of(a), "speedup") for a in found if a != "ar"}
    if all(isinstance(r, Estimate) for r in ratios.values()):
        own = ratios.get(arm)
        return own.value if isinstance(own, Estimate) else 1.0
    rate = results.get(place.of(arm), "throughput")
    assert isinstance(rate, Estimate)
    return rate.value


def _block_ms(results: Results, setting: Setting) -> Number:
    """Of one of the requests in flight: concurrency / blocks a second."""
    if setting.arm == "ar":
        return Missing("AR has no blocks")
    rate = value(results, setting, QUANTITY)
    if isinstance(rate, Missing):
        return rate
    scale = 1000 * setting.concurrency
    low, high = (None if bound is None else scale / bound for bound in (rate.high, rate.low))
    return Estimate(scale / rate.value, low, high, rate.n, f"concurrency / ({rate.method})")


def badge(results: Results, arm: str) -> str:
    """One word on whether the arm's output distribution was shown to be the target's."""
    if arm == "ar":
        return "reference"
    if results.cells is None:
        return "published"
    return EXACT.get(results.unaudited.get(arm, ""), results.unaudited.get(arm, ""))


def _doubts(results: Results, setting: Setting) -> tuple[str, ...]:
    """Cautions of the cells behind a place, each once."""
    own = [
        s
        for s in results.cautions
        if s.arm == setting.arm and _key(s) == _key(setting) and not s.tier and not s.category
        and setting.benchmark in (AVERAGE, s.benchmark)
    ]  # fmt: skip
    return tuple(dict.fromkeys(note for s in own for note in results.cautions[s]))

"""Wins, ties and trails: an arm against the best other arm, under a tie band.

The paper's band is 1 % of the best other arm. The measured band is the noise floor (``noise``). AR and the arm's own
variants are no competitors.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.stats.setting import Setting

BAND = 0.01
RIVALS = ("dflash2", "domino", "dspark", "dflash")  # the paper's other arms
Verdict = Literal["win", "tie", "trail"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """One setting's outcome; ``lead`` = value / best other value - 1."""

    setting: Setting
    rival: str
    lead: float
    band: float
    verdict: Verdict


def judge(value: float, best_other: float, band: float) -> Verdict:
    """Win above the band, trail below it, tie inside (its edges included)."""
    ratio = value / best_other
    return "win" if ratio > 1 + band else "trail" if ratio < 1 - band else "tie"


def printed_band(setting: Setting) -> Estimate | Missing:
    """The paper's band, the same everywhere."""
    return Estimate(BAND, None, None, 0, "the paper's 1 %")


def places(
    results: Results,
    settings: Iterable[Setting],
    quantity: str,
    rivals: Sequence[str] = RIVALS,
    band: Callable[[Setting], Estimate | Missing] = printed_band,
) -> tuple[list[Place], dict[Setting, str]]:
    """Outcomes of ``settings`` (each names its arm), and the settings that cannot be judged, with the reason."""
    judged, open_ = [], {}
    for setting in settings:
        own, width = results.get(setting, quantity), band(setting)
        others = {arm: e for arm in rivals if isinstance(e := results.get(setting.of(arm), quantity), Estimate)}
        if isinstance(own, Missing) or isinstance(width, Missing):
            open_[setting] = own.reason if isinstance(own, Missing) else str(getattr(width, "reason", ""))
        elif not others:
            open_[setting] = "no other arm here"
        else:
            rival = max(others, key=lambda arm: others[arm].value)
            best = others[rival].value
            verdict = judge(own.value, best, width.value)
            judged.append(
                Place(setting=setting, rival=rival, lead=own.value / best - 1, band=width.value, verdict=verdict)
            )
    return judged, open_


def count(judged: Sequence[Place]) -> tuple[int, int, int]:
    """(wins, ties, trails)."""
    verdicts = [place.verdict for place in judged]
    return verdicts.count("win"), verdicts.count("tie"), verdicts.count("trail")

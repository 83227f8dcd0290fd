"""A difference as a sentence, with its interval: who is faster, by how much, and whether by accepting more or by
finishing more blocks a second.
"""

from collections.abc import Iterable, Sequence

from harness.report.contrasts import Contrast
from harness.stats.blocks import QUANTITY
from harness.stats.estimate import Estimate, Missing
from harness.stats.setting import AVERAGE, Setting, printed
from sglang_specbench.arms import ARMS


def title(arm: str) -> str:
    """The arm as printed."""
    return ARMS[arm].title if arm in ARMS else arm


def where(setting: Setting, sets: int = 0) -> str:
    """``Qwen3-8B, T = 1, concurrency 1, mean of 9 prompt sets``."""
    average = setting.benchmark == AVERAGE and sets
    place = f"mean of {sets} prompt sets" if average else f"prompt set {printed(setting.benchmark)}"
    tier = f" {setting.tier}" if setting.tier else ""
    return f"{setting.target}, T = {setting.temperature:g}, concurrency {setting.concurrency}, {place}{tier}"


def percent(change: Estimate, signed: bool = False) -> str:
    """``4.1 % [2.9, 5.2]``; unsigned values are turned so that they read as a size: -3 [-4, -2] is 3 % [2, 4]."""
    value, low, high = change.value, change.low, change.high
    if not signed and value < 0:
        value, low, high = -value, _minus(high), _minus(low)
    text = f"{value:+z.1f} %" if signed else f"{value:z.1f} %"
    return text if low is None or high is None else f"{text} [{low:z.1f}, {high:z.1f}]"


def _minus(bound: float | None) -> float | None:
    return None if bound is None else -bound


def sentence(found: Sequence[Contrast]) -> str:
    """The contrasts of one place and one pair of arms; empty if the place holds no speed for either."""
    by = {c.quantity: c for c in found}
    speed = by.get("throughput")
    if speed is None:
        return ""
    first, second = title(speed.setting.arm), title(speed.rival)
    match speed.verdict, speed.change:
        case _, Missing(reason):
            return f"{first} against {second}: not measured ({reason})."
        case ("more" | "less") as verdict, Estimate() as change:
            word = "faster" if verdict == "more" else "slower"
            return f"{first} is {percent(change)} {word} than {second}{_parts(by, 'it')}."
        case "equal", Estimate() as change:
            return f"{first} and {second} are equally fast ({_near(speed, change)}){_parts(by, first)}."
        case _, change:
            return f"{first} and {second} cannot be told apart by speed ({_near(speed, change)}){_parts(by, first)}."


def _near(speed: Contrast, change: Estimate) -> str:
    return f"{percent(change, signed=True)}, band {speed.band:.2g} %"


def _parts(by: dict[str, Contrast], subject: str) -> str:
    """``: it accepts 3.1 % [2, 4] less and finishes 7.2 % [6, 8] more blocks a second``."""
    parts = []
    for quantity, verb, what in (("tau", "accepts", ""), (QUANTITY, "finishes", " blocks a second")):
        found = by.get(quantity)
        if found is not None and isinstance(found.change, Estimate):
            word = "more" if found.change.value >= 0 else "less" if quantity == "tau" else "fewer"
            parts.append(f"{verb} {percent(found.change)} {word}{what}")
    return f": {subject} {' and '.join(parts)}" if parts else ""


def by_place(found: Iterable[Contrast]) -> list[list[Contrast]]:
    """Contrasts of one place together, in order."""
    places: dict[tuple[Setting, str], list[Contrast]] = {}
    for c in found:
        places.setdefault((c.setting, c.rival), []).append(c)
    return list(places.values())

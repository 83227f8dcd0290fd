"""Was a speed measured on a machine that stood still: what else ran, and how far AR moved from opening to closing.

Each allocation opens and closes with AR. Its *drift* is ln(closing / opening) of AR's tokens per second, all its AR
cells pooled. A speed is *unsteady* if its allocation drifted by more than the limit, if its machine was busy, or if it
was not measured between the two AR cells. docs/noise.md gives the reasons for the limits.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.schema.header import BY_CALL

OTHER_CPU = 0.10  # share of the machine's cores that others used
STEAL = 0.02  # share that the hypervisor gave away
DRIFT = 0.03  # of AR, opening to closing: what the gate calls a change of throughput
# clocks_throttle_reasons.active (nvml.h): bits that slow a GPU for a reason that is not its own idleness
THROTTLES = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal limit",
    0x40: "hardware thermal limit",
    0x80: "power brake",
}


def busy(machine: Mapping[str, Any]) -> list[str]:
    """Why a header's ``machine`` was not a cell's own; empty where it was, or where nothing is known."""
    found = []
    if (share := machine.get("other_cpu", 0.0)) > OTHER_CPU:
        load = max(machine.get("load", [0.0]))
        found.append(f"other processes used {100 * share:.0f} % of the machine's cores (load {load:g})")
    if (share := machine.get("steal", 0.0)) > STEAL:
        found.append(f"the hypervisor gave {100 * share:.0f} % of the machine's cores to others")
    if others := machine.get("gpu_others", 0):
        found.append(f"{others} other processes were on the GPU")
    states = machine.get("gpu", ())
    slowed = {text for state in states for text in _throttled(state.get("clocks_throttle_reasons.active", ""))}
    return found + [f"the GPU was slowed: {text}" for text in sorted(slowed)]


def _throttled(mask: str) -> list[str]:
    try:
        bits = int(mask, 16)
    except ValueError:  # "[N/A]"
        return []
    return [text for bit, text in THROTTLES.items() if bits & bit]


def drifts(cells: Iterable[tuple[Any, float]]) -> dict[str, float]:
    """Allocation -> drift, of those that opened and closed with AR; ``cells`` are ok cells with their tokens/s.

    A server that somebody else started is asked twice in a row: that brackets nothing.
    """
    sides: dict[str, list[list[tuple[float, float]]]] = defaultdict(lambda: [[], []])
    for cell, throughput in cells:
        if cell.arm == "ar" and BY_CALL not in cell.allocation and throughput > 0:
            sides[cell.allocation][min(cell.replica, 1)].append((throughput * cell.wall_s, cell.wall_s))
    speeds = {
        name: [sum(t for t, _ in side) / sum(s for _, s in side) for side in both]
        for name, both in sides.items()
        if all(both)
    }
    return {name: math.log(closing / opening) for name, (opening, closing) in speeds.items()}


def doubts(cell: Any, drift: Mapping[str, float], closed: Mapping[str, str]) -> list[str]:
    """Why the speed of ``cell`` is unsteady; ``closed`` is when the last AR cell of an allocation began."""
    found = busy(getattr(cell, "machine", None) or {})
    moved = math.expm1(drift.get(cell.allocation, 0.0))
    if abs(moved) > DRIFT:
        found.append(
            f"AR itself moved by {100 * moved:+.1f} % from the opening to the closing of {cell.allocation}, "
            f"more than {100 * DRIFT:.0f} %"
        )
    if cell.arm != "ar" and cell.allocation in drift and cell.started_at > closed[cell.allocation]:
        found.append(f"measured after the closing AR of {cell.allocation}: nothing says what the machine did meanwhile")
    return found


def last_ar(cells: Sequence[Any]) -> dict[str, str]:
    """Allocation -> when its last AR cell began (ISO 8601)."""
    found: dict[str, str] = {}
    for cell in (c for c in cells if c.arm == "ar"):
        found[cell.allocation] = max(found.get(cell.allocation, ""), cell.started_at)
    return found

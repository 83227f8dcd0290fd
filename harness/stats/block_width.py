"""Positions that each arm's servers verified a block, by their attestations: a run may hold drafters of several widths.

A tau is at most the width, so two of unlike width are not rivals on equal terms, and whoever prints them says so.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sglang_specbench.arms import ARMS, WINDOW

if TYPE_CHECKING:
    import pandas as pd

Windows = Mapping[str, tuple[int, ...]]


def window(cell: Any) -> int:
    """Of one line of the store's frame of cells; the paper's where its server attested nothing."""
    return int((cell.attestation or {}).get("window", WINDOW))


def windows(cells: "pd.DataFrame") -> Windows:
    """Arm -> its widths, ascending, over the ok cells with a drafter; several where targets have unlike drafters."""
    found: dict[str, set[int]] = defaultdict(set)
    for cell in cells[(cells.outcome == "ok") & (cells.draft_digest != "")].itertuples():
        if (said := window(cell)) > 1:
            found[str(cell.arm)].add(said)
    return {arm: tuple(sorted(seen)) for arm, seen in found.items()}


def unlike(known: Windows) -> bool:
    """Is there more than one width."""
    return len({width for seen in known.values() for width in seen}) > 1


def drafted(seen: Iterable[int]) -> str:
    """``7 drafted``; ``7 or 15 drafted``."""
    return f"{' or '.join(str(width - 1) for width in seen)} drafted"


def notes(known: Windows) -> list[str]:
    """What a reader must be told: nothing where all are alike."""
    if not unlike(known):
        return []
    said = ", ".join(f"{ARMS[arm].title if arm in ARMS else arm} {drafted(seen)}" for arm, seen in known.items())
    return [f"drafters of unlike width, which bounds tau ({said} a block)"]

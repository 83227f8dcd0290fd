"""A run seen through some of its arms: tables, figures and scores of it then hold these and AR, and nothing else.

Averages, floors and speedups are the whole run's: leaving out an arm changes who competes, not any number.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from harness.stats.results import Results
from harness.stats.setting import Setting
from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def of_arms(results: Results, text: str) -> Results:
    """``results`` with the arms named in ``text``, separated by commas, and AR; all of them if it is empty.

    `UserError` with the nearest name for an arm that the run does not have.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        return results
    for name in names:
        require(results, name)
    return only(results, {"ar", *names})


def require(results: Results, arm: str) -> None:
    """`UserError` with the nearest name if ``arm`` is not in the run."""
    if arm not in results.arms():
        raise UserError(f"--arms: {results.name} has no arm {arm!r}", near_name(arm, results.arms()))


def only(results: Results, arms: Collection[str]) -> Results:
    """``results`` with ``arms`` alone, those of its plan included; an arm that it does not have is no error here."""
    kept = Results(
        name=results.name,
        draws=_of(results.draws, arms),
        sources={s: v for s, v in results.sources.items() if s.arm in arms},
        holes={s: v for s, v in results.holes.items() if s.arm in arms},
        cautions={s: v for s, v in results.cautions.items() if s.arm in arms},
        unsteady={s: v for s, v in results.unsteady.items() if s.arm in arms},
        gaps={s: v for s, v in results.gaps.items() if s.arm in arms},
        notes=results.notes,
        windows={arm: seen for arm, seen in results.windows.items() if arm in arms},
        unaudited={arm: mark for arm, mark in results.unaudited.items() if arm in arms},
        cells=_rows(results.cells, arms),
        per_cell=_rows(results.per_cell, arms),
        default_reason=results.default_reason,
        prompt_counts=results.prompt_counts,
        planned=None if results.planned is None else tuple(c for c in results.planned if c.arm in arms),
        absent=tuple(one for one in results.absent if one.setting.arm in arms),
    )
    for (setting, quantity), estimate in _of(results.values, arms).items():
        kept.put(setting, quantity, estimate)
    return kept


def _of(found: Mapping[tuple[Setting, str], Any], arms: Collection[str]) -> dict[tuple[Setting, str], Any]:
    return {key: value for key, value in found.items() if key[0].arm in arms}


def _rows(frame: "pd.DataFrame | None", arms: Collection[str]) -> "pd.DataFrame | None":
    return None if frame is None or frame.empty else frame[frame.arm.isin(arms)]

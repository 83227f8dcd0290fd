"""One ok cell, or one category of it, as draws of every quantity.

Knows how a cell's totals become numbers, and how a cell is set against the AR cells of its allocation. Knows nothing of
seeds and repeats: ``measure`` averages over them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.stats import acceptance, block_width, closure, speed
from harness.stats.absent import setting_of
from harness.stats.estimate import Draws
from harness.stats.prompt_totals import COLUMNS, PromptPanel
from harness.stats.setting import Setting
from sglang_specbench.width import WIDEST

SURVIVAL = tuple(f"a{i}" for i in range(1, WIDEST))
METHODS = {
    **acceptance.LEDGER,
    **speed.METHODS,
    **closure.METHODS,
    **{name: f"share of blocks that accept slot {name[1:]}" for name in SURVIVAL},
    "speedup": "throughput / AR throughput of the same allocation",
    "steady_throughput": "tokens/s while exactly c conversations were in flight",
}


@dataclass(kw_only=True, eq=False)
class CellDraws:
    """``draws`` by quantity; ``note`` says which requests were left out."""

    cell: Any  # named tuple of store.load's columns
    setting: Setting
    prompts: int
    draws: dict[str, Draws]
    note: str
    refused: Mapping[str, str] = field(default_factory=dict)  # quantity -> why this cell has none


def measured(panel: PromptPanel, index: int, category: str = "") -> CellDraws:
    """Cell number ``index`` of the panel; a category's wall is its share by time in flight."""
    cell, totals = panel.cells[index], panel.totals(index, category)
    time = cell.wall_s * totals["latency"] / panel.sums[index, :, COLUMNS.index("latency")].sum()
    draws = {**acceptance.ledger(totals), **speed.speeds(totals, time, cell.concurrency)}
    if not category:
        draws |= closure.factors(totals, time, cell.concurrency)
        drafted = block_width.window(cell) - 1
        draws |= dict(zip(SURVIVAL[:drafted], acceptance.survival(totals)[:drafted], strict=True))
    if cell.proposal == "none":
        draws = {name: d for name, d in draws.items() if np.isfinite(d[0])}
    refused = _refused(cell)
    draws = {name: d for name, d in draws.items() if name not in refused}
    return CellDraws(
        cell=cell,
        setting=setting_of(cell, category),
        prompts=panel.size(category),
        draws=draws,
        note=_note(totals),
        refused=refused,
    )


def _refused(cell: Any) -> dict[str, str]:
    """A block time is that of one of c requests in flight: with fewer prompts than c there never were so many."""
    if cell.prompts >= cell.concurrency:
        return {}
    why = f"{cell.prompts} prompts never reach concurrency {cell.concurrency}: no block time"
    return dict.fromkeys((n for n in speed.METHODS if n.endswith("_ms")), why)


def _note(totals: Mapping[str, Draws]) -> str:
    failed, uncounted = int(totals["failed"][0]), int(totals["uncounted"][0])
    parts = [f"{failed} failed requests are left out"] if failed else []
    if uncounted:
        parts.append(f"{uncounted} requests without usable counts are left out of tau")
    return "; ".join(parts)


def add_speedups(cells: Sequence[CellDraws]) -> None:
    """Give each its ``speedup`` and closure where its allocation holds AR at the same place.

    AR of the same seed is taken if there is any, else all AR cells of the allocation.
    """
    baselines: dict[tuple[Setting, object], list[CellDraws]] = defaultdict(list)
    for m in cells:
        if m.setting.arm == "ar":
            baselines[m.setting, m.cell.allocation].append(m)
    for m in cells:
        found = baselines.get((m.setting.of("ar"), m.cell.allocation), [])
        same = [ar.draws for ar in found if ar.cell.seed == m.cell.seed] or [ar.draws for ar in found]
        if same:
            m.draws["speedup"] = m.draws["throughput"] / np.mean([ar["throughput"] for ar in same], axis=0)
            if m.setting.arm != "ar" and not m.setting.category:
                m.draws |= closure.residuals(m.draws, same)

"""Survival curves of a run's arm: with bootstrap draws, block by block counts, and each prompt's own curve.

Knows a run's frames; a place counts only where `Results` has its acceptance length, and a curve whose sum is not that
tau is a fault of ours. Seeds and repeats are averaged as there.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.stats.absent import setting_of
from harness.stats.acceptance import survival as pooled_survival
from harness.stats.estimate import Estimate, mean
from harness.stats.prompt_totals import PLACES, PromptPanel, panels
from harness.stats.results import Results
from harness.stats.setting import Setting
from sglang_specbench.arms import WINDOW

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class RunSurvival:
    """One setting. ``draws[k, 0]`` is the share of blocks that accept slots 1..k + 1; the others are its replicates."""

    setting: Setting
    draws: Array  # (g, 1 + replicates)
    blocks: int  # over seeds and repeats; of one cell at temperature 0, where the others say the same again
    prompts: int
    by_prompt: Array  # (P, g): curves of the prompts that had blocks
    weights: Array  # (P,): their share of the blocks

    @property
    def curve(self) -> Array:
        """The measured survival, (g,)."""
        return self.draws[:, 0]


def survivals(results: Results, rows: pd.DataFrame, arm: str) -> list[RunSurvival]:
    """Every setting of ``arm`` that has an acceptance length, in the order of the run."""
    if results.cells is None:
        return []
    cells = results.cells[(results.cells.arm == arm) & (results.cells.outcome == "ok")]
    found: dict[Setting, list[tuple[PromptPanel, int]]] = defaultdict(list)
    for panel in panels(cells, rows):
        for index, cell in enumerate(panel.cells):
            found[setting_of(cell)].append((panel, index))
    known = [(setting, results.get(setting, "tau"), places) for setting, places in found.items()]
    return [_survival(setting, tau.value, places) for setting, tau, places in known if isinstance(tau, Estimate)]


def _survival(setting: Setting, tau: float, places: Sequence[tuple[PromptPanel, int]]) -> RunSurvival:
    seeds: dict[int, list[Array]] = defaultdict(list)
    for panel, index in places:
        cell = panel.cells[index]
        seeds[cell.seed].append(pooled_survival(panel.totals(index))[: window(cell) - 1])
    draws = mean([mean(repeats) for _, repeats in sorted(seeds.items())])
    if not np.isclose(1 + draws[:, 0].sum(), tau, rtol=1e-9):
        raise AssertionError(f"{setting}: survival sums to {1 + draws[:, 0].sum()}, tau is {tau}")
    counts = sum(panel.sums[index, :, -len(PLACES) :] for panel, index in places)  # (P, WINDOW)
    counts = np.asarray(counts)[np.asarray(counts).sum(axis=1) > 0]
    later = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
    return RunSurvival(
        setting=setting,
        draws=draws,
        blocks=int(counts.sum()) // (len(places) if setting.temperature == 0 else 1),
        prompts=places[0][0].size(),
        by_prompt=(later[:, 1:] / later[:, :1])[:, : len(draws)],
        weights=later[:, 0] / later[:, 0].sum(),
    )


def window(cell: Any) -> int:
    """Positions of a block, as the cell's server attested."""
    return int((cell.attestation or {}).get("window", WINDOW))

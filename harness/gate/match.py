"""Two runs laid over each other: the settings that both have, and the numbers behind every arm's effects.

Numbers are those of the tables (`Results`): nothing is counted here a second time.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from harness.gate.effects import TauChange, log_tau_influence, tau_change
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting, table_order
from sglang_specbench.arms import get_arm


def shared(baseline: Results, candidate: Results) -> list[Setting]:
    """Settings of whole benchmarks and tiers that both runs have numbers for, in table order."""
    both = set(baseline.sources) & set(candidate.sources)
    return sorted((s for s in both if not s.category and s.benchmark != AVERAGE), key=table_order)


def tau_changes(baseline: Results, candidate: Results, settings: Iterable[Setting]) -> dict[Setting, TauChange]:
    """The tables' tau of both runs, and how each prompt shares in its change; settings without blocks are left out."""
    changes = {}
    for setting in settings:
        old, new = (results.get(setting, "tau") for results in (baseline, candidate))
        if isinstance(old, Estimate) and isinstance(new, Estimate):
            before, after = (_shares(results, setting) for results in (baseline, candidate))
            prompts = sorted(before)
            if len(prompts) >= 2:
                keys = [(setting.benchmark, prompt) for prompt in prompts]
                sides = [np.array([side[p] for p in prompts]) for side in (before, after)]
                changes[setting] = tau_change(keys, (old.value, sides[0]), (new.value, sides[1]))
    return changes


def speeds(results: Results, arm_settings: Iterable[Setting]) -> dict[tuple[str, Setting], float]:
    """(allocation, setting) -> speedup over AR, or AR's own tokens per second; cells of one allocation averaged."""
    wanted, cells = set(arm_settings), results.per_cell
    found: dict[tuple[str, Setting], list[float]] = defaultdict(list)
    if cells is None:
        return {}
    for line in cells.to_dict("records"):
        setting = Setting(
            target=line["target"], arm=line["arm"], benchmark=line["benchmark"], tier=line["tier"],
            temperature=line["temperature"], concurrency=line["concurrency"],
        )  # fmt: skip
        value = line.get("throughput" if setting.arm == "ar" else "speedup")
        if setting in wanted and value is not None and np.isfinite(value):
            found[line["allocation"], setting].append(value)
    return {key: float(np.mean(values)) for key, values in found.items()}


def text_of(setting: Setting) -> str:
    """A setting in reports and in the history: ``gsm8k T=0 argmax c=1``."""
    tier = f"/{setting.tier}" if setting.tier else ""
    proposal = get_arm(setting.arm).proposal(setting.temperature)
    return f"{setting.benchmark}{tier} T={setting.temperature:g} {proposal} c={setting.concurrency}"


def _shares(results: Results, setting: Setting) -> dict[str, float]:
    """Prompt -> its influence on log tau of the setting: a mean over seeds of means over repeats of cells.

    d log(mean of taus) = sum over cells of weight tau_cell / mean tau times d log(tau_cell).
    """
    by_seed = _cells_by_seed(results, setting)
    influence: dict[str, float] = defaultdict(float)
    mean = 0.0
    for cells in by_seed.values():
        for cell in cells:
            counts, weight = results.prompt_counts[cell], 1 / (len(by_seed) * len(cells))
            tau, log_influence = log_tau_influence(counts.correct, counts.blocks)
            mean += weight * tau
            for prompt, value in zip(counts.prompts, log_influence, strict=True):
                influence[prompt] += weight * tau * float(value)
    return {prompt: value / mean for prompt, value in influence.items()}


def _cells_by_seed(results: Results, setting: Setting) -> dict[int, list[str]]:
    assert results.cells is not None
    seeds = dict(zip(results.cells.cell, results.cells.seed, strict=True))
    found: dict[int, list[str]] = defaultdict(list)
    for cell in results.sources[setting]:
        if results.prompt_counts[cell].blocks.sum() > 0:
            found[int(seeds[cell])].append(cell)
    return found

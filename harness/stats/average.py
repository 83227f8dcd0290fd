"""Averages over benchmarks, as the paper's Average rows: plain means, and a hole as soon as one benchmark is one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from harness.stats.estimate import Estimate, Missing, from_draws
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting


def add(results: Results, quantities: Sequence[str]) -> None:
    """Enter the average over a target's benchmarks for every arm, temperature and concurrency."""
    for target in results.targets():
        sets = results.benchmarks(target)
        places = {(s.arm, s.temperature, s.concurrency) for s in results.settings() if _averaged(s, target)}
        for arm, temperature, concurrency in sorted(places):
            place = Setting(target=target, arm=arm, benchmark=AVERAGE, temperature=temperature, concurrency=concurrency)
            settings = [replace(place, benchmark=b) for b in sets]
            for name in quantities:
                _average(results, place, settings, name)


def _averaged(setting: Setting, target: str) -> bool:
    return setting.target == target and not setting.tier and not setting.category


def _average(results: Results, place: Setting, settings: Sequence[Setting], name: str) -> None:
    lacking = [s for s in settings if (s, name) not in results.draws]
    if len(lacking) == len(settings):
        return
    if lacking:
        reasons = [f"{s.benchmark}: {e.reason}" for s in lacking if isinstance(e := results.get(s, name), Missing)]
        results.put(place, name, Missing(_lacks(reasons, len(settings))))
        return
    draws = np.mean([results.draws[s, name] for s in settings], axis=0)
    n = sum(e.n for s in settings if isinstance(e := results.get(s, name), Estimate))
    results.put(place, name, from_draws(draws, n, f"mean over {len(settings)} benchmarks"))
    results.draws[place, name] = draws
    results.sources[place] = tuple(c for s in settings for c in results.sources[s])


def _lacks(reasons: Sequence[str], of: int) -> str:
    """One benchmark's reason, or how many are missing and each one's."""
    return reasons[0] if len(reasons) == 1 else f"{len(reasons)} of {of} benchmarks are missing: {'; '.join(reasons)}"

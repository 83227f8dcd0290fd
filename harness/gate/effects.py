"""From counts and times to effects: how much tau and throughput changed, and how surely.

tau is a mean of ratios of sums over prompts, so its log ratio between two runs is linearised per prompt (the influence
function of a ratio estimator, e.g. Cochran, Sampling Techniques, 1977, section 6.4): prompts are the clusters, and a
prompt enters as a pair, since both runs measured the same ones. Throughput has one number per allocation (a go on one
device): cells of one allocation share its luck, so the allocation is the unit, and an arm's number is its mean log
throughput over the cells relative to AR in the same allocation.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.gate.judgement import Effect
from harness.stats.setting import Setting

Array = NDArray[np.float64]
Speeds = Mapping[tuple[str, Setting], float]  # (allocation, setting) -> tokens per second, or speedup


@dataclass(frozen=True)
class TauChange:
    """Change of log tau in one setting, and each prompt's share in it (mean 0; its spread is the doubt)."""

    value: float
    prompts: tuple[Hashable, ...]  # (prompt set, prompt id): a prompt is one cluster in all settings that use it
    influence: Array


def tau_change(prompts: Sequence[Hashable], before: tuple[float, Array], after: tuple[float, Array]) -> TauChange:
    """Pair two runs over ``prompts``; each side is tau, and each prompt's influence on its log. Two prompts or more."""
    if len(prompts) < 2:
        raise ValueError("tau needs two paired prompts or more")
    return TauChange(math.log(after[0] / before[0]), tuple(prompts), after[1] - before[1])


def log_tau_influence(correct: Array, blocks: Array) -> tuple[float, Array]:
    """Tau = 1 + C/V over prompts, and each prompt's influence on its log; NaN without blocks."""
    tau = float(1 + correct.sum() / blocks.sum())
    return tau, (correct + blocks - tau * blocks) / (blocks.mean() * tau)


def tau_effect(changes: Sequence[TauChange]) -> Effect:
    """Mean change over settings; a prompt that several settings share counts as one cluster.

    The standard error sums, per prompt, its shares in all settings, so that settings with common prompts (temperature 0
    and 1 of one set) are not taken for independent.
    """
    shares: dict[Hashable, float] = {}
    for change in changes:
        n, scale = len(change.prompts), len(changes)
        for prompt, influence in zip(change.prompts, change.influence, strict=True):
            shares[prompt] = shares.get(prompt, 0.0) + float(influence) / (n * scale)
    clusters = len(shares)
    variance = clusters / (clusters - 1) * sum(share**2 for share in shares.values())
    return Effect(value=float(np.mean([c.value for c in changes])), se=math.sqrt(variance), df=clusters - 1)


def throughput_effect(baseline: Array, candidate: Array) -> Effect:
    """Change of the mean log throughput between two groups of allocations.

    The noise floor is the spread between A/A allocations inside the two groups, pooled, so that a candidate noisier
    than the baseline widens its own interval. Raises ValueError if neither group has two allocations.
    """
    groups = [baseline, candidate]
    squares = sum(float(((g - g.mean()) ** 2).sum()) for g in groups)
    df = sum(len(g) - 1 for g in groups)
    if df <= 0:
        raise ValueError("one allocation a side and no noise floor: measure an A/A repeat")
    se = math.sqrt(squares / df * (1 / len(baseline) + 1 / len(candidate)))
    return Effect(value=float(candidate.mean() - baseline.mean()), se=se, df=df)


def pooled_logs(baseline: Speeds, candidate: Speeds) -> tuple[Array, Array]:
    """One number per allocation of each side: mean over its settings of log(speed / the setting's baseline mean).

    Only settings that both sides measured count. A setting is centred on its own baseline, so that an allocation with
    fewer settings than another (one seed has the greedy cells, another has not) does not look like a change.
    """
    shared = {s for _, s in baseline} & {s for _, s in candidate}
    by_setting = {s: [math.log(v) for (_, t), v in baseline.items() if t == s] for s in shared}
    centre = {s: float(np.mean(logs)) for s, logs in by_setting.items()}
    return _per_allocation(baseline, centre), _per_allocation(candidate, centre)


def _per_allocation(speeds: Speeds, centre: Mapping[Setting, float]) -> Array:
    shifts: dict[str, list[float]] = {}
    for (allocation, setting), value in speeds.items():
        if setting in centre:
            shifts.setdefault(allocation, []).append(math.log(value) - centre[setting])
    return np.array([np.mean(shifts[a]) for a in sorted(shifts)])

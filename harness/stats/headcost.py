"""Head cost by subtraction, as the paper's Table 3 takes it.

Median over the benchmarks of an arm's block time, greedy, concurrency 1, minus the same median of the DFlash control in
the same allocation; HumanEval is left out, because its prefill is not small beside its decode. The share is the head's
part of the arm's own block. Works on printed numbers as well, where block time = tau / throughput.

The paper's block time holds the prefill, and a faster drafter shares its prefill out among fewer blocks, so with short
answers the difference is not the head's alone. The same subtraction on decode-only block times stands beside it, and
where the two intervals do not touch, a caution says so.
"""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from harness.stats.estimate import Draws, Estimate, Missing, from_draws
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting

CONTROL, LEFT_OUT = "dflash", ("humaneval",)
METHODS = {
    "median_block_ms": "median block time over benchmarks, HumanEval left out",
    "head_ms": "median block time - DFlash's, same allocation",
    "head_share_pct": "100 * head / median block time",
}
PRINTED_MS = 0.001  # the last digit of Table 3
DECODE = "head_decode_ms"
DECODE_METHOD = "median decode-only block time - DFlash's, same allocation"


def eligible(setting: Setting) -> bool:
    """Does this setting's block time enter the medians."""
    whole = not setting.tier and not setting.category and setting.seed is None
    greedy = setting.temperature == 0 and setting.concurrency == 1 and setting.arm != "ar"
    return whole and greedy and setting.benchmark not in (*LEFT_OUT, AVERAGE)


def place(target: str, arm: str) -> Setting:
    """Under which setting head costs stand."""
    return Setting(target=target, arm=arm, benchmark=AVERAGE, temperature=0.0)


def head_costs(blocks: Mapping[tuple[Setting, str], Draws]) -> dict[Setting, dict[str, Draws]]:
    """`METHODS` per (target, arm), from block-time draws by (setting, allocation).

    Each allocation is taken by itself over the benchmarks that the arm and its control share there; allocations are
    averaged. An arm without a control in any allocation has only its median.
    """
    medians: dict[tuple[str, str, str], dict[str, Draws]] = defaultdict(dict)
    for (setting, allocation), draws in blocks.items():
        if eligible(setting):
            medians[setting.target, setting.arm, allocation][setting.benchmark] = draws
    costs: dict[Setting, list[dict[str, Draws]]] = defaultdict(list)
    for (target, arm, allocation), own in medians.items():
        control = medians.get((target, CONTROL, allocation), {})
        costs[place(target, arm)].append(_cost(own, control))
    return {setting: _mean(found) for setting, found in costs.items()}


def _cost(own: Mapping[str, Draws], control: Mapping[str, Draws]) -> dict[str, Draws]:
    shared = sorted(own.keys() & control.keys())
    if not shared:
        return {"median_block_ms": np.median(list(own.values()), axis=0)}
    block = np.median([own[b] for b in shared], axis=0)
    head = block - np.median([control[b] for b in shared], axis=0)
    return {"median_block_ms": block, "head_ms": head, "head_share_pct": 100 * head / block}


def _mean(found: list[dict[str, Draws]]) -> dict[str, Draws]:
    complete = [f for f in found if "head_ms" in f] or found
    return {name: np.mean([f[name] for f in complete], axis=0) for name in complete[0]}


def add(
    results: Results, blocks: Mapping[tuple[Setting, str], Draws], decode: Mapping[tuple[Setting, str], Draws]
) -> None:
    """Put the costs into ``results``: the paper's from ``blocks``, and beside it that from decode-only block times."""
    beside = head_costs({key: draws for key, draws in decode.items() if np.isfinite(draws[0])})
    for setting, draws in head_costs(blocks).items():
        for name, method in METHODS.items():
            results.put(setting, name, _estimate(draws.get(name), method, _benchmarks(blocks, setting)))
        own = beside.get(setting, {}).get("head_ms")
        results.put(setting, DECODE, _estimate(own, DECODE_METHOD, _benchmarks(decode, setting)))
        if said := _apart(results.get(setting, "head_ms"), results.get(setting, DECODE)):
            results.cautions[setting] = (*results.cautions.get(setting, ()), said)


def _benchmarks(blocks: Mapping[tuple[Setting, str], Draws], setting: Setting) -> int:
    return len({s.benchmark for s, _ in blocks if eligible(s) and place(s.target, s.arm) == setting})


def _estimate(draws: Draws | None, method: str, benchmarks: int) -> Estimate | Missing:
    if draws is None:
        return Missing(f"no {CONTROL} control in the same allocation")
    return from_draws(draws, benchmarks, f"{method} ({benchmarks} benchmarks)")


def _apart(paper: Estimate | Missing, decode: Estimate | Missing) -> str:
    """The caution, if both have intervals and these are more than a printed digit apart; "" otherwise."""
    if isinstance(paper, Missing) or isinstance(decode, Missing):
        return ""
    if paper.low is None or paper.high is None or decode.low is None or decode.high is None:
        return ""
    if paper.low <= decode.high + PRINTED_MS and decode.low <= paper.high + PRINTED_MS:
        return ""
    return (
        f"head cost: {paper.value:.3f} ms by the paper's block time, {decode.value:.3f} ms without prefill, and their "
        "intervals do not touch: the answers are too short for the paper's"
    )

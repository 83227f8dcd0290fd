"""Closure: is a speedup the product of what speculation says it is, and where does the rest go.

The model is ``speedup = tau * t_AR / t_block``: decode time of an AR token over decode time of a block, for one stream.
A measured throughput is exactly that rate times five factors, each a share between counts or times of the same rows:

  truncation    tokens that the last block lost to EOS or the length limit: emitted / committed
  uncounted     requests without usable counts
  first_token   the prefill's token, which no block paid for: completion / (completion - requests)
  prefill       time after the first token / time in flight
  gap           time in flight / (concurrency * wall): queueing of the client, idle streams at the end

So ``residual = 100 ln(speedup / predicted)`` is the sum of ``100 ln(factor of the arm / factor of AR)``; what AR's own
repeats leave over is ``residual_rest``. Logs, because they add and because seeds can then be averaged.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.stats.estimate import Draws, divide

FACTORS = ("truncation", "uncounted", "first_token", "prefill", "gap")
METHODS = {
    "predicted": "tau * t_AR / t_block, decode only",
    "residual": "100 ln(speedup / predicted)",
    **{f"residual_{f}": f"100 ln(arm / AR), {f}" for f in FACTORS},
    "residual_rest": "100 ln(speedup / predicted) less the named parts",
}


def factors(totals: Mapping[str, Any], time: Any, concurrency: int) -> dict[str, Any]:
    """``factor_*`` of a cell that took ``time`` seconds, and ``rate``: the model's tokens per second of one stream.

    An AR cell has no truncation and nothing uncounted; its rate is that of single tokens.
    """
    decoded = totals["completion"] - totals["requests"]
    emitted = totals["counted_completion"] - totals["counted"]
    committed = totals["correct"] + totals["blocks"]
    flight = totals["decode"] + totals["prefill"]
    speculative = np.asarray(totals["blocks"]) > 0
    rate = np.where(speculative, divide(committed, totals["counted_decode"]), divide(decoded, totals["decode"]))
    counted = divide(decoded, emitted) * divide(totals["counted_decode"], totals["decode"])
    return {
        "rate": rate,
        "factor_truncation": np.where(speculative, divide(emitted, committed), 1.0),
        "factor_uncounted": np.where(speculative, counted, 1.0),
        "factor_first_token": divide(totals["completion"], decoded),
        "factor_prefill": divide(totals["decode"], flight),
        "factor_gap": divide(flight, concurrency * time),
    }


def residuals(arm: Mapping[str, Draws], baselines: Sequence[Mapping[str, Draws]]) -> dict[str, Draws]:
    """``predicted``, ``residual`` and its parts, for a cell with ``speedup`` and the AR cells it was divided by."""

    def log(name: str) -> Draws:
        nothing = np.full_like(arm[name], np.nan)  # of an AR whose answers all ended in the prefill
        ratio = arm[name] / np.exp(np.mean([np.log(b.get(name, nothing)) for b in baselines], axis=0))
        return np.asarray(100 * np.log(ratio))

    with np.errstate(divide="ignore", invalid="ignore"):
        predicted = log("rate")
        parts = {f"residual_{f}": log(f"factor_{f}") for f in FACTORS}
        residual = 100 * np.log(arm["speedup"]) - predicted
        rest = residual - np.sum(list(parts.values()), axis=0)
    return {"predicted": np.exp(predicted / 100), "residual": residual, **parts, "residual_rest": rest}

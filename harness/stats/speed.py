"""Speed: throughput of the closed loop, its steady state, block times.

Arguments are totals of a cell (`panel.COLUMNS`) and its wall in seconds. A resample has no wall of its own: the
measured one is shared out among requests in proportion to the time they were in flight, so ``wall * latency /
latency of the sample``. At concurrency 1 that is exact but for the gaps between requests.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from harness.stats.estimate import divide

METHODS = {
    "throughput": "completion tokens / wall, prefill included",
    "block_ms": "wall / verify blocks",
    "decode_block_ms": "(last token - first token) / verify blocks",
    "decode_token_ms": "(last token - first token) / (completion - 1)",
}


def speeds(totals: Mapping[str, Any], time: Any, concurrency: int) -> dict[str, Any]:
    """Every quantity of `METHODS` for a cell (or its share) that took ``time`` seconds.

    A block time is that of one of the ``concurrency`` requests in flight. NaN where there is nothing to divide by, or
    where a first token was not seen.
    """
    return {
        "throughput": divide(totals["completion"], time),
        "block_ms": divide(1000 * concurrency * time, totals["blocks"]),
        "decode_block_ms": divide(1000 * totals["counted_decode"], totals["blocks"]),
        "decode_token_ms": divide(1000 * totals["decode"], totals["completion"] - totals["requests"]),
    }


def steady_state(rows: pd.DataFrame, concurrency: Mapping[str, int]) -> dict[str, float]:
    """Per cell: tokens per second while exactly c = ``concurrency[cell]`` conversations were in flight.

    From the c-th conversation's start to the c-th last one's end; NaN if that is no time. A request's tokens are shared
    out evenly over the time from its first token (its send, if that was not seen) to its last.
    """
    ok = rows[rows.outcome == "ok"]
    done = ok.done_s.to_numpy(float)
    first = np.minimum(ok.first_token_s.fillna(ok.sent_s).to_numpy(float), done - 1e-9)  # one token: at its end
    windows = _windows(ok, concurrency)
    start, end = (ok.cell.map({c: w[i] for c, w in windows.items()}).to_numpy(float) for i in (0, 1))
    inside = np.clip(np.minimum(done, end) - np.maximum(first, start), 0, None) / (done - first)
    tokens = pd.Series(inside * ok.completion_tokens.to_numpy(float)).groupby(ok.cell.to_numpy(), observed=True).sum()
    return {
        cell: float(tokens[cell]) / (end - start) if end > start else float("nan")
        for cell, (start, end) in windows.items()
    }


def _windows(ok: pd.DataFrame, concurrency: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Start and end of the steady state of each cell; both 0 where fewer than c conversations ran."""
    talks = ok.groupby(["cell", "prompt_id"], sort=False, observed=True)
    sent, done = talks.sent_s.min(), talks.done_s.max()
    windows = {}
    for cell, places in sent.reset_index(drop=True).groupby(sent.index.get_level_values("cell")).indices.items():
        c = concurrency[cell]
        begun, ended = np.sort(sent.to_numpy()[places]), np.sort(done.to_numpy()[places])
        windows[cell] = (begun[c - 1], ended[-c]) if len(places) >= c else (0.0, 0.0)
    return windows

"""Acceptance: every tau from the same counts, each under its own name, and the survival of slots.

Arguments are totals of a cell (`panel.COLUMNS`), as numbers or as draws. All estimators pool over requests except
``tau_request_mean``, which is shown because others publish it. A verify block commits d drafts and one bonus token
(SGLang 0.5.23 ``batch_result_processor.py``); counts keep the last block whole, ``completion`` is cut at EOS or the
length limit, and the prefill's token belongs to no block.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.stats.estimate import divide
from harness.stats.prompt_totals import PLACES

# name -> formula, as printed beside the number
LEDGER = {
    "tau": "1 + correct / blocks",
    "tau_emitted": "(completion - 1) / blocks",
    "tau_sglang": "completion / blocks",
    "tau_request_mean": "mean over requests of completion / blocks",
}


def ledger(totals: Mapping[str, Any]) -> dict[str, Any]:
    """Every estimator of `LEDGER`; NaN where there is no block."""
    blocks = totals["blocks"]
    emitted = totals["counted_completion"] - totals["counted"]
    return {
        "tau": 1 + divide(totals["correct"], blocks),
        "tau_emitted": divide(emitted, blocks),
        "tau_sglang": divide(totals["counted_completion"], blocks),
        "tau_request_mean": divide(totals["ratios"], totals["counted"]),
    }


def survival(totals: Mapping[str, Any]) -> NDArray[np.float64]:
    """a_i for i = 1, 2, ...: the share of blocks that accept slot i. Shape (WIDEST - 1, ...), 0 behind the drafter's
    last slot; 1 + sum a_i is tau.
    """
    histogram = np.array([totals[p] for p in PLACES], dtype=float)
    reached = histogram[::-1].cumsum(axis=0)[::-1]
    return divide(reached[1:], reached[0])

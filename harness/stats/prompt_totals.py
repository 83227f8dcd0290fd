"""From rows to per-prompt sums: the only thing the estimators ever see of a row.

A *panel* is the cells that ran the same prompts. Its sums have one column per `COLUMNS` entry and one per histogram
place; estimators divide totals of them, so a bootstrap is a weighted sum over prompts (see ``resample``).

Which rows count where: rows whose outcome is not ok count nowhere but in ``failed``. Rows without spec fields
(autoregressive, or finished in the prefill), and retracted ones (their prefill tokens cannot be told from a block's),
count for throughput but not for acceptance; of these, speculative rows that should have had counts are ``uncounted``.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.stats import resample
from harness.stats.estimate import divide
from sglang_specbench.width import WIDEST

COLUMNS = (
    "requests",  # ok rows
    "failed",  # rows that are not ok
    "uncounted",  # ok rows of a speculative arm that lack counts, or were retracted
    "completion",  # tokens of ok rows, the prefill's included
    "latency",  # seconds from send to last token, ok rows
    "prefill",  # seconds from send to first token, ok rows; NaN where the first was not seen
    "decode",  # seconds from first to last token, ok rows
    "counted",  # ok rows with counts
    "counted_completion",
    "counted_decode",
    "blocks",
    "correct",
    "ratios",  # sum of completion / blocks per request, SGLang's per-request number
)
PLACES = tuple(f"h{i}" for i in range(WIDEST))  # blocks that committed i drafts
PANEL = ["prompt_set", "prompt_version", "tier", "prompts"]  # cells that agree in these ran the same prompts
NEEDED = (
    *("cell", "prompt_id", "category", "outcome", "completion_tokens", "verify_ct", "correct_drafts", "histogram"),
    *("retractions", "sent_s", "first_token_s", "done_s"),
)
_NONE = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class PromptPanel:
    """Cells over the same prompts."""

    cells: tuple[Any, ...]  # C named tuples of store.load's columns
    prompts: tuple[str, ...]  # sorted ids, P of them
    categories: NDArray[np.str_]  # (P,)
    sums: NDArray[np.float64]  # (C, P, K); K = COLUMNS then PLACES

    def totals(self, cell: int, category: str = "") -> dict[str, NDArray[np.float64]]:
        """Each column's draws (1 + replicates,) for one cell, over all prompts or those of one category."""
        chosen = self.categories == category if category else slice(None)
        drawn = resample.counts(self.prompts)[:, chosen] @ self.sums[cell, chosen]
        return dict(zip((*COLUMNS, *PLACES), drawn.T, strict=True))

    def size(self, category: str = "") -> int:
        """How many prompts."""
        return int((self.categories == category).sum()) if category else len(self.prompts)


def panels(cells: pd.DataFrame, rows: pd.DataFrame) -> Iterator[PromptPanel]:
    """Panels of the ok cells, one at a time: their sums are most of a run's memory."""
    needed = rows[list(NEEDED)]
    for _, group in cells[cells.outcome == "ok"].groupby(PANEL, sort=False):
        yield _panel(group, needed[needed.cell.isin(group.cell)])


def _panel(cells: pd.DataFrame, rows: pd.DataFrame) -> PromptPanel:
    place = pd.Index(cells.cell).get_indexer(pd.Index(rows.cell.astype(object)))
    prompt, ids = pd.factorize(rows.prompt_id.to_numpy(object), sort=True)
    speculative = (cells.proposal != "none").to_numpy()[place]
    shape = (len(cells), len(ids))
    flat = place * len(ids) + prompt
    sums = [np.bincount(flat, weights=v, minlength=math.prod(shape)) for v in _columns(rows, speculative).values()]
    categories = np.full(len(ids), "", dtype=object)
    categories[prompt] = rows.category.to_numpy(object)
    return PromptPanel(
        cells=tuple(cells.itertuples(index=False)),
        prompts=tuple(map(str, ids)),
        categories=categories.astype(np.str_),
        sums=np.stack(sums, axis=1, dtype=np.float64).reshape(*shape, -1),
    )


def _columns(rows: pd.DataFrame, speculative: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
    """One value per row and column; what does not count is 0."""
    ok = (rows.outcome == "ok").to_numpy()
    completion = rows.completion_tokens.to_numpy(float)
    blocks = rows.verify_ct.to_numpy(float, na_value=np.nan)
    counted = ok & (rows.retractions == 0).to_numpy() & (np.nan_to_num(blocks) > 0)
    sent, done = rows.sent_s.to_numpy(float), rows.done_s.to_numpy(float)
    first = rows.first_token_s.to_numpy(float, na_value=np.nan)
    values = {
        "requests": (ok, 1.0),
        "failed": (~ok, 1.0),
        "uncounted": (ok & speculative & ~counted & (completion > 1), 1.0),
        "completion": (ok, completion),
        "latency": (ok, done - sent),
        "prefill": (ok, first - sent),
        "decode": (ok, done - first),
        "counted": (counted, 1.0),
        "counted_completion": (counted, completion),
        "counted_decode": (counted, done - first),
        "blocks": (counted, blocks),
        "correct": (counted, rows.correct_drafts.to_numpy(float, na_value=np.nan)),
        "ratios": (counted, divide(completion, blocks)),
    }
    columns = {name: np.where(mask, value, 0.0) for name, (mask, value) in values.items()}
    histogram = np.where(counted[:, None], _histograms(rows.histogram), 0.0)
    return columns | dict(zip(PLACES, histogram.T, strict=True))


def _histograms(column: "pd.Series[object]") -> NDArray[np.float64]:
    """Ragged histograms as (rows, WIDEST); absent ones are zeros."""
    arrays = [_NONE if h is None else h for h in column]
    lengths = np.fromiter(map(len, arrays), dtype=int, count=len(arrays))
    table = np.zeros((len(arrays), WIDEST))
    if lengths.any():
        row = np.repeat(np.arange(len(arrays)), lengths)
        place = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
        table[row, place] = np.concatenate(arrays)
    return table

"""Latency from the stored times, and whose clock each number is of.

``sent_s`` and ``done_s`` are the client's clock: a request's latency is from its send to its whole answer. The time to
the first token is the server's own (SGLang's ``first_token_latency``, from taking the request in): the network and
what waits before the server are not in it. Without streaming, gaps between tokens were not seen: what stands for them
is the mean of a request, (last - first token) / (tokens - 1), which mixes both clocks. With ``stream = true`` in the
sweep all times are the client's, and the gaps between chunks are there: a chunk is what one verify block committed.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from harness.report.sentences import title
from harness.stats.estimate import Estimate, Missing
from harness.stats.setting import TIERS, printed
from harness.tables.table import Column, Table, TableCell, TableRow, words

KEYS = ["target", "prompt_set", "tier", "temperature", "concurrency"]
PERCENTILES = (50, 90, 99)
QUANTITIES = {  # key -> heading, decimals, percentiles shown
    "first_ms": ("first token, ms", 1, PERCENTILES),
    "latency_s": ("latency, s", 3, PERCENTILES),
    "token_ms": ("ms a token", 2, (50,)),
    "user": ("tokens/s a user", 1, (50,)),
}
GAPS = "gap between chunks, ms"  # of streamed answers
_LATENCY = "latency: the client's clock, from a request's send to its whole answer. "
STREAMED = (
    f"{_LATENCY}first token, ms a token and gaps: the client's clock, too, of streamed answers. A chunk is what a "
    "reader sees appear at once: the tokens that one verify block committed, more where chunks came together."
)
WHOLE = (
    f"{_LATENCY}first token: the server's own clock, from taking the request in, so without the network. ms a token: a "
    "request's mean after the first, of both clocks; gaps were not seen, because answers are not streamed (`stream = "
    "true` in the sweep)."
)
NOTES = (
    "tokens/s a user: a request's tokens / its latency. Closed loop: a request is sent when the one before it ends, so "
    "queueing under an open load is not in these numbers.",
    "A percentile stands here when at least one request lies beyond it: p90 from 10 requests, p99 from 100.",
)


def table(cells: pd.DataFrame, rows: pd.DataFrame) -> Table | None:
    """A section per target, prompt set, temperature and concurrency; ok requests of all seeds and repeats together.

    None without one.
    """
    times = _times(cells, rows)
    if times.empty:
        return None
    streamed = bool(times.gaps_ms.notna().any())
    columns = [
        Column(group=heading, name=f"p{p}", decimals=decimals)
        for heading, decimals, percentiles in QUANTITIES.values()
        for p in percentiles
    ]
    gaps = [Column(group=GAPS, name=f"p{p}", decimals=1) for p in PERCENTILES if streamed]
    return Table(
        name="latency",
        title="Latency",
        stub="Arm",
        columns=(*columns, *gaps, Column(name="requests")),
        rows=tuple(row for key, group in times.groupby(KEYS, sort=True) for row in _rows(key, group, streamed)),
        notes=(STREAMED if streamed else WHOLE, *NOTES),
    )


def _times(cells: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """One line a request: `KEYS`, arm, order, the `QUANTITIES`, and gaps (None where answers came whole)."""
    ok = cells[cells.outcome == "ok"][["cell", "arm", *KEYS]]
    good = rows[rows.outcome == "ok"]
    found = good.assign(cell=good.cell.astype(str)).merge(ok, on="cell")
    latency, first = found.done_s - found.sent_s, found.first_token_s - found.sent_s
    later = found.completion_tokens - 1
    return found[["arm", *KEYS]].assign(
        first_ms=1000 * first,
        latency_s=latency,
        token_ms=1000 * (latency - first) / later.where(later > 0),
        user=found.completion_tokens / latency.where(latency > 0),
        gaps_ms=[None if seconds is None else 1000 * np.diff(seconds) for seconds in found.chunk_s],
    )


def _rows(key: Sequence[object], group: pd.DataFrame, streamed: bool) -> Iterator[TableRow]:
    target, prompt_set, tier, temperature, concurrency = key
    name = f"{printed(str(prompt_set))} {TIERS.get(str(tier), str(tier))}".strip()
    for arm in dict.fromkeys(group.arm):
        own = group[group.arm == arm]
        yield TableRow(
            section=f"{target}, {name}, T = {temperature:g}, concurrency {concurrency}",
            label=title(arm),
            cells=(*_cells(own), *(_gaps(own) if streamed else ()), *words(f"{len(own):,}")),
        )


def _cells(own: pd.DataFrame) -> Iterator[TableCell]:
    for name, (_, _, percentiles) in QUANTITIES.items():
        values = own[name].dropna().to_numpy(float)
        for p in percentiles:
            yield TableCell(content=percentile(values, p))


def _gaps(own: pd.DataFrame) -> Iterator[TableCell]:
    values = np.concatenate([np.empty(0), *own.gaps_ms.dropna()])
    for p in PERCENTILES:
        content = percentile(values, p, "gaps") if len(values) else Missing("answers came whole, or in one chunk")
        yield TableCell(content=content)


def percentile(values: "np.typing.NDArray[np.float64]", p: int, of: str = "requests") -> Estimate | Missing:
    """The p-th percentile, if at least one value is to be expected beyond it."""
    if not len(values):
        return Missing("no first token was seen: the server ran without --enable-metrics")
    needed = int(np.ceil(100 / (100 - p)))
    if len(values) < needed:
        return Missing(f"p{p} needs {needed} {of}")
    return Estimate(float(np.percentile(values, p)), None, None, len(values), f"p{p} over {of}")

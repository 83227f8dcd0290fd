"""Are these the rows of this cell: the identities that SGLang's counts keep, and the limits that the cell sets.

One function, called on what was just measured and on what is read back. Counts are those of `harness.schema.request`.
Works on the columns of a cell file, all rows at once: a paper's run has hundreds of thousands.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harness.prompts.chat_template import ids_hash
from harness.schema.cell import Cell

SHOWN = 3  # defects that are spelt out
CLOCK_S = 1e-6  # sums of the clock's readings may differ by rounding
_COUNTS = ("prompt_tokens", "completion_tokens", "retractions", "cached_tokens", "verify_ct", "correct_drafts")
_NONE = -1  # stands for an absent count: a stored one is never negative, which is checked first

Mask = NDArray[np.bool_]
Check = tuple[Mask, Callable[[int], str]]


def defects(table: pa.Table, cell: Cell, window: int, wall_s: float | None = None) -> list[str]:
    """Why ``table`` cannot be the rows of ``cell`` with outcome ok; empty when it can.

    ``window`` is positions verified a block; ``wall_s``, where given, must be the rows' own.
    """
    found = [f"{_name(table, i)}: {text}" for i, text in _row_defects(table, cell, window)]
    shown = found[:SHOWN] + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])
    return shown + _order_defects(table, cell) + _wall_defects(table, wall_s)


def counter_defects(table: pa.Table, counters: Mapping[str, int]) -> list[str]:
    """Where the server's own counters (`harness.serve.counters`; {} = it has none) are not the sums of the rows."""
    own = {
        "requests": table.num_rows,
        "tokens": int(_ints(table, "completion_tokens").sum()),
        "verify_calls": int(table["verify_ct"].fill_null(0).to_numpy().sum()),
    }
    return [
        f"the server counted {n} {name.replace('_', ' ')} in the meantime, the rows hold {own[name]}"
        for name, n in counters.items()
        if n != own.get(name)
    ]


def reached(table: pa.Table) -> int:
    """The most requests that were in flight at once; one that ends when another is sent makes room for it."""
    edges = np.concatenate([table["done_s"].to_numpy(), table["sent_s"].to_numpy()])
    steps = np.repeat([-1, 1], table.num_rows)
    return int(steps[np.argsort(edges, kind="stable")].cumsum().max(initial=0))


def prompts_digest(table: pa.Table) -> str:
    """Sha256 (hex) over the hashes of the rendered first turns, in order: what a header's ``prompts_digest`` holds."""
    first = _texts(table, "prompt_hash")[_ints(table, "turn") == 0]
    return hashlib.sha256("".join(first).encode()).hexdigest()


def _row_defects(table: pa.Table, cell: Cell, window: int) -> list[tuple[int, str]]:
    ok = _texts(table, "outcome") == "ok"
    found = [(int(i), str(table["reason"][i].as_py())) for i in np.flatnonzero(~ok)]
    checks = [*_limits(table, cell), *_counts(table, cell, window), *_clock(table)]
    found += [(i, text) for i, text in _chunk_defects(table, cell) if ok[i]]
    for mask, text in checks:
        found += [(int(i), text(int(i))) for i in np.flatnonzero(mask & ok)]
    found += [(i, text) for i, text in _output_defects(table) if ok[i]]
    return sorted(found, key=lambda pair: pair[0])  # stable: within a row, in the order of the checks


def _limits(table: pa.Table, cell: Cell) -> Iterator[Check]:
    for name in _COUNTS:
        raw = table[name].fill_null(0).to_numpy()
        yield raw < 0, lambda i, name=name, raw=raw: f"{name} is {raw[i]}"  # type: ignore[misc]
    completion = _ints(table, "completion_tokens")
    yield completion == 0, lambda _: "no token at all, and the request ended well"
    most = cell.max_new_tokens
    yield completion > most, lambda i: f"completion_tokens {completion[i]}, and the limit is {most}"
    if cell.ignore_eos:
        finish = _texts(table, "finish_reason")
        yield finish == "stop", lambda _: "it stopped by itself, although the cell goes on after the end token"


def _counts(table: pa.Table, cell: Cell, window: int) -> Iterator[Check]:
    completion, verify, correct = (_ints(table, n) for n in ("completion_tokens", "verify_ct", "correct_drafts"))
    counted, has_histogram = verify != _NONE, table["histogram"].is_valid().to_numpy()
    if cell.proposal == "none":
        some = counted | (correct != _NONE) | has_histogram
        yield some, lambda _: "spec counts from an autoregressive server"
        return
    yield ~counted & (completion > 1), lambda i: f"no spec counts for {completion[i]} tokens"
    whole = counted & (correct != _NONE) & has_histogram
    yield counted & ~whole, lambda _: "spec counts without correct drafts or histogram"
    blocks, drafts, longest, least = _histogram(table["histogram"])
    yield whole & (least < 0), lambda _: "a histogram with a negative count"
    yield whole & (longest > window), lambda i: f"a block of {longest[i] - 1} drafts, and the window is {window}"
    yield whole & (blocks != verify), lambda i: f"sum(histogram) {blocks[i]} != verify_ct {verify[i]}"
    yield whole & (drafts != correct), lambda i: f"sum(i*histogram[i]) {drafts[i]} != correct_drafts {correct[i]}"
    cut = 1 + correct + verify - completion
    outside = whole & ((cut < 0) | (cut >= window)) & (_ints(table, "retractions") == 0)
    yield outside, lambda i: f"1 + correct + verify_ct - completion = {cut[i]}, outside [0, {window})"


def _clock(table: pa.Table) -> Iterator[Check]:
    sent, done = (table[name].to_numpy() for name in ("sent_s", "done_s"))
    first = table["first_token_s"].to_numpy()
    first = np.where(np.isnan(first), done, first)
    wrong = ~((sent >= 0) & (sent <= first + CLOCK_S) & (first <= done + CLOCK_S) & np.isfinite(done))
    yield wrong, lambda i: f"sent at {sent[i]:g} s, first token at {first[i]:g} s, done at {done[i]:g} s"


def _chunk_defects(table: pa.Table, cell: Cell) -> Iterator[tuple[int, str]]:
    """Arrivals of a streamed answer: in order, between send and end, up to its last token; of no other answer."""
    if not cell.stream and all(table[name].null_count == table.num_rows for name in ("chunk_s", "chunk_tokens")):
        return
    for i, row in enumerate(
        table.select(["sent_s", "done_s", "completion_tokens", "chunk_s", "chunk_tokens"]).to_pylist()
    ):
        seconds, tokens = row["chunk_s"] or [], row["chunk_tokens"] or []
        times = [row["sent_s"], *seconds, row["done_s"]]
        if not cell.stream:
            yield i, "arrivals of chunks, and the cell's answers are not streamed"
        elif len(seconds) != len(tokens) or any(b - a < -CLOCK_S for a, b in pairwise(times)):
            yield i, "chunks did not arrive one after another, between send and end"
        elif tokens[-1:] != [row["completion_tokens"]] or any(b <= a for a, b in pairwise([0, *tokens])):
            yield (
                i,
                f"chunks of {tokens[-1] if tokens else 0} tokens in all, and the answer has {row['completion_tokens']}",
            )


def _output_defects(table: pa.Table) -> Iterator[tuple[int, str]]:
    """Counts and hashes against the token ids, where these are kept."""
    if "output_ids" not in table.column_names or table["output_ids"].null_count == table.num_rows:
        return
    counts, hashes = _ints(table, "completion_tokens"), table["output_hash"].to_pylist()
    for i, ids in enumerate(table["output_ids"].to_pylist()):
        if ids is not None and len(ids) != counts[i]:
            yield i, f"completion_tokens {counts[i]}, and the answer has {len(ids)} token ids"
        elif ids is not None and hashes[i] != ids_hash(ids):
            yield i, "output_hash is not that of output_ids"


def _order_defects(table: pa.Table, cell: Cell) -> list[str]:
    """Each of the cell's prompts once, in order, with its turns in order."""
    index, turn = _ints(table, "index"), _ints(table, "turn")
    ids = _texts(table, "prompt_id")
    next_turn = (np.diff(index) == 0) & (np.diff(turn) == 1) & (ids[1:] == ids[:-1])
    next_prompt = (np.diff(index) == 1) & (turn[1:] == 0)
    whole = len(index) > 0 and index[0] == 0 and turn[0] == 0 and index[-1] == cell.prompts - 1
    if whole and (next_turn | next_prompt).all():
        return []
    return [
        f"rows are lacking or doubled: {len(index)} rows of {len(set(index))} prompts, and the cell has {cell.prompts}"
    ]


def _wall_defects(table: pa.Table, wall_s: float | None) -> list[str]:
    if wall_s is None or not table.num_rows:
        return []
    own = float(table["done_s"].to_numpy().max() - table["sent_s"].to_numpy().min())
    if own <= 0:
        return ["no time passed between its first send and its last answer"]
    return [] if abs(own - wall_s) <= CLOCK_S else [f"wall_s is {wall_s:g}, and the rows span {own:g} s"]


def _histogram(column: Any) -> tuple[NDArray[np.int64], ...]:
    """Per row: sum(h), sum(i * h[i]), length up to the last block, least entry; 0 where there is none."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    flat = pc.list_flatten(column).to_numpy().astype(np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    place = np.arange(len(flat)) - np.repeat(starts, lengths)
    row = np.repeat(np.arange(len(lengths)), lengths)
    longest, least = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.int64)
    np.maximum.at(longest, row[flat > 0], place[flat > 0] + 1)
    np.minimum.at(least, row[flat < 0], flat[flat < 0])
    sums = (np.concatenate([[0], np.cumsum(values)]) for values in (flat, flat * place))
    blocks, drafts = (total[ends] - total[starts] for total in sums)
    return blocks, drafts, longest, least


def _ints(table: pa.Table, name: str) -> NDArray[np.int64]:
    return np.asarray(table[name].fill_null(_NONE).to_numpy(), dtype=np.int64)


def _texts(table: pa.Table, name: str) -> NDArray[Any]:
    return np.array(table[name].to_pylist(), dtype=object)


def _name(table: pa.Table, row: int) -> str:
    return f"{table['prompt_id'][row].as_py()}/{table['turn'][row].as_py()}"

"""One request's raw row. `harness.store.row_checks` holds the identities that its counts must satisfy.

Counts are SGLang's own per-request ones (``meta_info``, SGLang 0.5.23 ``managers/tokenizer_manager.py``): a verify
block that commits d drafts and one bonus token adds 1 to ``verify_ct``, d to ``correct_drafts`` and 1 to
``histogram[d]``. The first token of a request comes from the prefill and is in no block. Counts keep the whole last
block; ``completion_tokens`` is cut at EOS or the length limit.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """Counts, times and hashes of one request; times in seconds of the client's clock since the cell began."""

    index: int  # place in the cell's fixed order
    prompt_id: str
    turn: int = 0
    category: str = ""
    prompt_hash: str  # sha256 hex of the rendered ids
    prompt_tokens: int
    completion_tokens: int
    verify_ct: int | None = None  # None: no spec fields (AR, or finished in the prefill)
    correct_drafts: int | None = None
    histogram: tuple[int, ...] | None = None  # index = drafts accepted in a block
    cap_histogram: tuple[int, ...] | None = None  # DSpark's scheduled window
    finish_reason: str = ""  # stop | length | abort
    retractions: int = 0
    cached_tokens: int = 0
    sent_s: float
    first_token_s: float | None = None
    done_s: float
    chunk_s: tuple[float, ...] | None = None  # arrivals of a streamed answer's chunks
    chunk_tokens: tuple[int, ...] | None = None  # tokens of the answer by then
    output_hash: str  # sha256 hex of the output ids
    output_ids: tuple[int, ...] | None = None  # only on request
    text: str | None = None  # only on request
    outcome: str = "ok"  # ok | timeout | aborted | invalid
    reason: str = ""

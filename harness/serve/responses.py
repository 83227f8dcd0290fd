"""What SGLang 0.5.23 answers, as typed values: ``/generate`` and ``/server_info``.

Knows the names of fields and where they stand (``managers/tokenizer_manager.py``, ``entrypoints/http_server.py``).
Knows nothing of HTTP, of cells, or of whether a value is right: `row.broken_identities` and the attestation judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.serve.arguments import arguments
from harness.serve.fields import MOST_BLOCK, MOST_TOKENS, Fields
from sglang_specbench.attestation import KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One finished ``/generate`` request. Spec counts are None where SGLang sent none (AR, or ended in the prefill)."""

    text: str
    output_ids: tuple[int, ...]
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    retractions: int
    finish: str  # stop | length | abort
    finish_message: str
    first_token_s: float | None  # seconds after the server took the request in; needs --enable-metrics
    verify_ct: int | None
    correct_drafts: int | None
    histogram: tuple[int, ...] | None
    cap_histogram: tuple[int, ...] | None
    chunk_s: tuple[float, ...] | None = None  # of a streamed answer: when each chunk came, seconds since it was sent
    chunk_tokens: tuple[int, ...] | None = None  # ... and how many tokens there were by then

    @classmethod
    def parse(cls, body: Any) -> "Answer":
        """From the decoded JSON; `Failure` (invalid) names the field that is missing or of another type."""
        top = Fields("/generate", body)
        meta = top.table("meta_info")
        finish = Fields("/generate: finish_reason", meta.held.get("finish_reason"))  # null: it is not finished
        aborted = finish.text("type") == "abort"  # its first token may never have come: a difference to zero
        return cls(
            text=top.text("text"),
            output_ids=top.counts("output_ids", MOST_TOKENS),
            prompt_tokens=meta.count("prompt_tokens"),
            completion_tokens=meta.count("completion_tokens"),
            cached_tokens=meta.count("cached_tokens"),
            retractions=meta.count("num_retractions"),
            finish=finish.text("type"),
            finish_message=finish.text("message", default=""),
            first_token_s=None if aborted else meta.seconds("first_token_latency"),
            verify_ct=meta.count("spec_verify_ct") if meta.has("spec_verify_ct") else None,
            correct_drafts=meta.count("spec_num_correct_drafts") if meta.has("spec_num_correct_drafts") else None,
            histogram=meta.counts_or_none("spec_correct_drafts_histogram"),
            cap_histogram=meta.counts_or_none("spec_cap_lens_histogram"),
        )


@dataclass(frozen=True, kw_only=True)
class ServerInfo:
    """What of ``/server_info`` decides whether a server may be measured."""

    served_name: str  # tells our server from a stale one on the same port
    sglang_version: str
    attestation: Mapping[str, Any] | None  # of the specbench plugin, as of the server's start
    downgrades: tuple[str, ...]  # fast or exact paths that the server has left since
    verification: str  # "exact" or what it fell back to; "" without the plugin
    arguments: Mapping[str, Any] = field(default_factory=dict)  # see `arguments`
    running: int | None = None  # requests that its scheduler takes at once

    @classmethod
    def parse(cls, body: Any) -> "ServerInfo":
        """From the decoded JSON; `Failure` (invalid) if it is no server info."""
        top = Fields("/server_info", body)
        schedulers = top.tables("internal_states")
        states = [state.table(KEY) for state in schedulers]
        return cls(
            served_name=top.text("served_model_name"),
            sglang_version=top.text("version"),
            attestation=_attestation(top.table(KEY)) if top.has(KEY) else None,
            downgrades=tuple(text for state in states for text in state.texts("downgrades")),
            verification=next((s.text("verification") for s in states if s.has("verification")), ""),
            arguments=arguments(top.held),
            running=_running(schedulers),
        )


def _attestation(said: Fields) -> Mapping[str, Any]:
    """What the plugin published, once the fields that are reckoned with have their types."""
    for key in ("window", "drafted", "threads"):
        if said.has(key):
            said.count(key, MOST_BLOCK)
    if said.has("patches"):
        said.table("patches")
    for key in ("device", "dtype", "proposal", "arm", "target_digest", "draft_digest", "verification"):
        said.text(key, default="")
    held: Mapping[str, Any] = said.held
    return held


def _running(schedulers: Sequence[Fields]) -> int | None:
    """The least that any of the server's schedulers takes at once; None where they do not say."""
    key = "effective_max_running_requests_per_dp"
    return min((scheduler.count(key) for scheduler in schedulers if scheduler.has(key)), default=None)

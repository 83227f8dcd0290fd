"""What SGLang 0.5.23 answers, as typed values: ``/generate`` and ``/server_info``.

Knows the names of fields and where they stand (``managers/tokenizer_manager.py``, ``entrypoints/http_server.py``).
Knows nothing of HTTP, of cells, or of whether a value is right: `row.broken_identities` and the attestation judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.schema.failure import Failure
from harness.serve.arguments import arguments
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

    @classmethod
    def parse(cls, body: Any) -> "Answer":
        """From the decoded JSON; `Failure` (invalid) names what is missing."""
        try:
            meta = body["meta_info"]
            finish = meta["finish_reason"] or {}
            return cls(
                text=body["text"],
                output_ids=tuple(body["output_ids"]),
                prompt_tokens=meta["prompt_tokens"],
                completion_tokens=meta["completion_tokens"],
                cached_tokens=meta["cached_tokens"],
                retractions=meta["num_retractions"],
                finish=finish.get("type", ""),
                finish_message=str(finish.get("message") or ""),
                first_token_s=meta.get("first_token_latency"),
                verify_ct=meta.get("spec_verify_ct"),
                correct_drafts=meta.get("spec_num_correct_drafts"),
                histogram=_counts(meta, "spec_correct_drafts_histogram"),
                cap_histogram=_counts(meta, "spec_cap_lens_histogram"),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise _strange("/generate", error) from None


def _strange(route: str, error: Exception) -> Failure:
    return Failure("invalid", f"{route} answered without {error}: not the surface of SGLang 0.5.23")


def _counts(meta: Mapping[str, Any], key: str) -> tuple[int, ...] | None:
    value = meta.get(key)
    return None if value is None else tuple(value)


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
        try:
            states = [state.get(KEY) or {} for state in body["internal_states"]]
            return cls(
                served_name=body["served_model_name"],
                sglang_version=body["version"],
                attestation=body.get(KEY),
                downgrades=tuple(text for state in states for text in state.get("downgrades", ())),
                verification=next((s["verification"] for s in states if "verification" in s), ""),
                arguments=arguments(body),
                running=_running(body["internal_states"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise _strange("/server_info", error) from None


def _running(states: Sequence[Mapping[str, Any]]) -> int | None:
    """The least that any of the server's schedulers takes at once; None where they do not say."""
    said = [state.get("effective_max_running_requests_per_dp") for state in states]
    return min((n for n in said if isinstance(n, int)), default=None)

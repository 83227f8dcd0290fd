"""Lines of a server's log that forbid to measure a cell on it: SGLang says so once, and goes on serving something else.

Knows texts of SGLang 0.5.23 and what each means; starts and reads nothing. What can be read from live objects is in the
attestation; this covers what SGLang decides and forgets.
"""

import re
from dataclasses import dataclass

from sglang_specbench.arms import Arm, Proposal


# The texts are checked against the installed SGLang's source by tests/sglang_specbench/test_log_literals.py.
@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A line that matches ``pattern`` on one of ``devices`` means ``reason``."""

    pattern: str
    reason: str
    devices: tuple[str, ...] = ("cpu", "cuda")


_GRAPHS = ("cuda",)  # a CPU server captures no graphs, so its heads are eager by design

REFUSED_LOG = (
    Refusal(
        pattern=r"non-greedy verification is unavailable",
        reason="sampled requests are verified greedily: the distribution is not the target's",
    ),
    Refusal(pattern=r"kept eager \(reason=", reason="the head is outside the draft graph", devices=_GRAPHS),
    Refusal(
        pattern=r"ran the eager head on a decode step",
        reason="a batch size was not captured, so the head ran eager",
        devices=_GRAPHS,
    ),
    Refusal(pattern=r"Disable \w+ draft cuda graph because", reason="the whole draft runs without a graph"),
    Refusal(
        pattern=r"[;,] falling back to (sequential|eager|the per-layer)",
        reason="a fused kernel failed and its slow twin serves from now on",
    ),
    Refusal(
        pattern=r"(fused KV materialization disabled|sampling-accept graph capture failed)",
        reason="part of the step runs outside its fused kernel or graph",
        devices=_GRAPHS,
    ),
    Refusal(
        pattern=r"(DFLASH block size|DSpark gamma) mismatch", reason="the checkpoint was trained for another block"
    ),
    Refusal(
        pattern=r"(Failed to infer DFLASH block_size|Failed to read DSpark draft config|speculative_num_draft_tokens"
        r" is not set; defaulting|DSpark gamma is not set)",
        reason="the draft's config could not be read; SGLang guessed the block",
    ),
    Refusal(
        pattern=r"((does not support|only supports) attention_backend|DFLASH only enables 'trtllm_mha')",
        reason="the draft's attention backend was replaced, which changes its cost",
    ),
    Refusal(
        pattern=r"flashinfer is unavailable; the DFlash2 selector falls back",
        reason="DFlash2's top-k is slow without flashinfer",
        devices=_GRAPHS,
    ),
    Refusal(pattern=r"SPS table is uninitialized", reason="DSpark's scheduler verifies everything without a profile"),
    Refusal(
        pattern=r"Invalid value for SGLANG_\w+: .* using default",
        reason="a misspelt environment value was replaced by its default",
    ),
    Refusal(pattern=r"KV cache pool is full", reason="requests were retracted: the KV pool is too small"),
    Refusal(pattern=r"Failed to (load|execute)( general)? plugin:? specbench", reason="the plugin did not load"),
    Refusal(pattern=r"Scheduler hit an exception", reason="the scheduler died"),
)


def check_log(text: str, arm: Arm, proposal: Proposal, device: str) -> list[str]:
    """Why a server that printed ``text`` must not be measured; empty when it may.

    Each refused line is named once with its reason. On CUDA the arm's proof lines must be there as well.
    """
    reasons = []
    for rule in REFUSED_LOG:
        found = re.search(rf"^.*{rule.pattern}.*$", text, re.MULTILINE) if device in rule.devices else None
        if found:
            reasons.append(f"{rule.reason}: log says {found.group().strip()[:200]!r}")
    if device == "cuda":
        missing = [pattern for pattern in arm.proof(proposal) if not re.search(pattern, text)]
        reasons += [f"the log lacks the proof line {pattern!r}" for pattern in missing]
    return reasons

"""One cell: the smallest thing that is measured, and its name.

A cell's id is a hash of everything known before the run that can change a number. What only the run shows (device,
driver, rendered token ids, attestation) stands in the cell's `header.Header` and is compared when runs are merged.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ID_LENGTH = 16  # hex digits: 64 bits; a million cells collide with odds below 3e-8


@dataclass(frozen=True, kw_only=True)
class Cell:
    """target x arm x proposal x prompt set x temperature x seed x concurrency x repeat, fully resolved."""

    target: str  # name in the sweep, e.g. "Qwen3-8B"
    target_digest: str
    arm: str
    proposal: str  # none | argmax | sampled
    draft_digest: str  # "" for arms without a checkpoint
    prompt_set: str  # manifest name, e.g. "gsm8k", "speed-throughput-1k"
    prompt_version: str  # manifest version and hash of the rows taken
    tier: str = ""  # SPEED entropy tier: low_entropy | mixed | high_entropy; "" elsewhere
    temperature: float
    seed: int  # --random-seed of the server
    concurrency: int
    repeat: int = 0  # allocation number; A/A repeats of one arm differ in it
    replica: int = 0  # 1: the AR bracket that closes an allocation; 0: everything else
    prompts: int  # how many prompts, from the front of the set
    max_new_tokens: int
    ignore_eos: bool = False
    top_p: float = 1.0
    top_k: int = -1
    device: str = "cuda"  # cuda | cpu
    dtype: str = "bfloat16"
    render: str = ""  # recipe and digest of tokenizer + chat template
    capacity: int = 1  # most requests in flight that the server is set up for: graph sizes, running requests
    context_length: int = 8192  # tokens, prompt and answer
    stream: bool = False  # whether answers come in chunks, which costs time and tells when each came
    server: tuple[str, ...] = ()  # server arguments that the sweep adds, in order
    versions: tuple[str, ...] = ()  # "sglang 0.5.23", "specbench 0.1.0"

    @property
    def id(self) -> str:
        """First 16 hex digits of the sha256 of the canonical JSON of all fields."""
        text = json.dumps(vars(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Cell":
        """Inverse of ``vars(cell)`` after a way through JSON, which turns tuples into lists."""
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
        return cls(**values)

    @property
    def launch_key(self) -> tuple[Any, ...]:
        """Cells with the same key can be served by one server process."""
        return (
            *(self.target, self.target_digest, self.arm, self.proposal, self.draft_digest, self.seed),
            *(self.repeat, self.replica, self.device, self.dtype, self.capacity, self.context_length),
            *(self.server, self.versions),
        )

    @property
    def label(self) -> str:
        """For people: ``Qwen3-8B/lilicorr gsm8k T=1 seed 42 c=1``."""
        tier = f"/{self.tier}" if self.tier else ""
        return (
            f"{self.target}/{self.arm} {self.prompt_set}{tier} T={self.temperature:g} "
            f"seed {self.seed} c={self.concurrency} r{self.repeat}" + (" closing" if self.replica else "")
        )

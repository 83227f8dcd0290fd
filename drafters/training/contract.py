"""The training contract: what every arm has in common, as one frozen value read from TOML.

``drafters/training/contract.toml`` is the paper's; ``drafters/mini/contract.toml`` is the same scaled down. An arm's
own settings (head sizes, loss weights) stand in its ``recipe.toml`` and are not here.
"""

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sglang_specbench.config import from_dict, load_toml, near_name
from sglang_specbench.errors import UserError

_WITHOUT_EFFECT = (
    "arms", "micro_batch", "checkpoint_every", "evaluate_every", "decode_prompts", "decode_tokens", "patience",
)  # fmt: skip
PAPER = Path(__file__).with_name("contract.toml")
SHIPPED = {"paper": PAPER, "mini": Path(__file__).parents[1] / "mini" / "contract.toml"}


def locate(source: str) -> Path:
    """The contract file ``source``, or the shipped one of that name; `UserError` if it is neither."""
    path = Path(source)
    if path.exists() or path.suffix == ".toml":
        return path
    if source not in SHIPPED:
        raise UserError(f"{source}: neither a contract file nor a shipped contract", near_name(source, SHIPPED))
    return SHIPPED[source]


@dataclass(frozen=True, kw_only=True)
class Contract:
    """`ValueError` for values that cannot be trained under."""

    arms: tuple[str, ...]  # drafters that are trained side by side
    seed: int  # of the order of samples, of anchors and of first weights
    length: int  # tokens of a sample, prompt included
    batch: int  # sequences of a step, over all ranks
    micro_batch: int  # sequences of one forward on one rank; changes no weights
    epochs: int  # times that the corpus is gone through
    anchors: int  # blocks drafted from each sequence, drawn anew each step
    learning_rate: float  # of AdamW, at the end of the warm-up
    weight_decay: float  # of AdamW
    clip: float  # norm of each arm's gradient
    schedule: Literal["linear", "cosine"]  # after the warm-up, down to zero
    warm_up: float  # share of the steps
    precision: Literal["fp32", "bf16"]  # of the compute; parameters and moments are fp32
    frozen_backbone: bool = False  # only heads are trained, on the backbone of --backbone
    checkpoint_every: int  # steps between states that a second call resumes from
    evaluate_every: int  # steps between evaluations on the held-out conversations
    decode_prompts: int = 8  # held-out prompts that the reference loop decodes at each evaluation, for the real tau
    decode_tokens: int = 128  # tokens of each of them
    patience: int = 0  # evaluations without a better tau, of any arm, after which training stops; 0: never

    def __post_init__(self) -> None:
        for name in (
            "length",
            "batch",
            "micro_batch",
            "epochs",
            "anchors",
            "checkpoint_every",
            "evaluate_every",
            "decode_tokens",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)} is not at least 1: write 1 or more")
        for name in ("decode_prompts", "patience"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} {getattr(self, name)} is negative: write 0 or more")
        for name, least in (("learning_rate", 0.0), ("clip", 0.0), ("weight_decay", -math.ulp(0.0))):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > least):
                raise ValueError(f"{name} {getattr(self, name)} cannot be trained with: write a finite number above 0")
        if not self.arms or len(set(self.arms)) < len(self.arms):
            raise ValueError("arms is empty or names an arm twice: name each arm once")
        if not 0 <= self.warm_up < 1:
            raise ValueError(f"warm_up {self.warm_up:g} is no share of the steps: write 0 or more, and less than 1")
        if self.batch % self.micro_batch:
            raise ValueError(f"batch {self.batch} is no multiple of micro_batch {self.micro_batch}: change one")

    @classmethod
    def load(cls, path: Path) -> "Contract":
        """The contract at ``path``; `UserError` for an unknown or missing key or a bad value."""
        return from_dict(cls, load_toml(path), str(path))

    def require_even(self, ranks: int) -> None:
        """`UserError`, with the numbers that fit, unless every rank gets the same number of whole micro-batches."""
        at_once = ranks * self.micro_batch
        if self.batch % at_once:
            below = self.batch // at_once * at_once
            batches = " or ".join(str(b) for b in (below, below + at_once) if b)
            rounds = self.batch // self.micro_batch
            fitting = ", ".join(str(n) for n in range(1, rounds + 1) if rounds % n == 0)
            raise UserError(
                f"batch {self.batch} is no multiple of {ranks} ranks x micro_batch {self.micro_batch}",
                f"write batch {batches}, or start {fitting} ranks",
            )

    def steps(self, samples: int) -> int:
        """Optimiser steps over ``samples``; the last partial batch of an epoch is dropped, as in the paper.

        `UserError` if there is no whole batch.
        """
        if samples < self.batch:
            raise UserError(f"the corpus has {samples} samples, a batch {self.batch}", "add samples, or lower batch")
        return samples // self.batch * self.epochs

    def rate(self, step: int, steps: int) -> float:
        """Factor of the learning rate at 0-based ``step`` of ``steps``: warm-up from 1/n, then down towards zero."""
        warm = max(1, round(self.warm_up * steps))
        if step < warm:
            return (step + 1) / warm
        left = (steps - step) / (steps - warm)
        return left if self.schedule == "linear" else 0.5 - 0.5 * math.cos(math.pi * left)

    def to_json(self) -> dict[str, Any]:
        """Every key of the contract, as JSON has it."""
        return {**dataclasses.asdict(self), "arms": list(self.arms)}

    def digest(self) -> str:
        """Identity of all that can change an arm's weights: a resumed run must share it.

        Not arms (one trains the same alone as beside others), cadences, or how a step is split into rounds.
        """
        values = dataclasses.asdict(self)
        for name in _WITHOUT_EFFECT:
            del values[name]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

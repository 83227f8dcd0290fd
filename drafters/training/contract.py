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
from typing import Literal

from sglang_specbench.config import from_dict, load_toml
from sglang_specbench.errors import UserError

PAPER = Path(__file__).with_name("contract.toml")


@dataclass(frozen=True, kw_only=True)
class Contract:
    """Keys are explained in ``contract.toml``; `ValueError` for values that cannot be trained under."""

    arms: tuple[str, ...]
    seed: int
    length: int
    batch: int
    micro_batch: int
    epochs: int
    anchors: int
    learning_rate: float
    weight_decay: float
    clip: float
    schedule: Literal["linear", "cosine"]
    warm_up: float
    precision: Literal["fp32", "bf16"]
    checkpoint_every: int
    evaluate_every: int

    def __post_init__(self) -> None:
        for name in ("length", "batch", "micro_batch", "epochs", "anchors", "checkpoint_every", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)} is not at least 1: write 1 or more")
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

    def digest(self) -> str:
        """Identity of all that can change an arm's weights: a resumed run must share it (not arms and cadences)."""
        values = dataclasses.asdict(self)
        for name in ("arms", "checkpoint_every", "evaluate_every"):  # an arm trains the same alone as beside others
            del values[name]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

"""The time of one pass of a target from what it must read and compute, and the regimes that follow.

Knows peak rates and a model's shape; not kernels. A pass over ``batch`` sequences of ``context`` cached tokens with
``positions`` new tokens each takes max(memory, arithmetic) + overhead: weights and caches are read once a pass,
arithmetic grows with the positions. Peak rates make it a lower bound.

- *free* regime: memory is the longer, so verifying more positions costs nothing;
- above the *critical context* a sequence adds more reading than arithmetic, so no batch ever leaves the free regime
  (the critical sequence length of MagicDec, arXiv 2408.11049);
- within the free regime, *weights* or *kv* says which of the two reads is the larger.
"""

import math
from dataclasses import dataclass

from harness.speedup_model.shape import Shape


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """One accelerator at its published peaks."""

    source: str
    flops: float  # dense operations a second at the weights' precision
    bandwidth: float  # bytes a second of device memory
    memory: float  # bytes

    @property
    def ridge(self) -> float:
        """Operations for every byte at which a pass turns from memory-bound to compute-bound."""
        return self.flops / self.bandwidth


@dataclass(frozen=True)
class Step:
    """The parts of a pass, in seconds."""

    weights_s: float
    kv_s: float
    arithmetic_s: float
    overhead_s: float

    @property
    def seconds(self) -> float:
        """Time of the pass."""
        return max(self.weights_s + self.kv_s, self.arithmetic_s) + self.overhead_s

    @property
    def regime(self) -> str:
        """``weights`` or ``kv`` (memory-bound, by the larger read), or ``arithmetic``."""
        if self.arithmetic_s > self.weights_s + self.kv_s:
            return "arithmetic"
        return "kv" if self.kv_s > self.weights_s else "weights"


def position_flops(shape: Shape, context: float) -> float:
    """Operations of one new position: two a parameter used, and attention over ``context`` cached tokens."""
    return 2 * shape.active + shape.attention_flops * context


def step(shape: Shape, hardware: Hardware, batch: int, positions: int, context: float, overhead_s: float = 0.0) -> Step:
    """One pass of ``positions`` new tokens for each of ``batch`` sequences."""
    tokens = batch * positions
    return Step(
        weights_s=shape.bytes_read(tokens) / hardware.bandwidth,
        kv_s=batch * context * shape.kv_bytes / hardware.bandwidth,
        arithmetic_s=tokens * position_flops(shape, context) / hardware.flops,
        overhead_s=overhead_s,
    )


def critical_context(shape: Shape, hardware: Hardware, positions: int) -> float:
    """Cached tokens above which a sequence's reading outlasts its arithmetic; inf if attention never lets it."""
    margin = shape.kv_bytes * hardware.ridge - positions * shape.attention_flops
    return positions * 2 * shape.active / margin if margin > 0 else math.inf


def free_batch(shape: Shape, hardware: Hardware, positions: int, context: float) -> int | None:
    """The largest batch whose pass of ``positions`` is still memory-bound; None: every batch is.

    Stepwise for a mixture of experts, whose weight reads grow with the batch; the scan ends at 2**20 sequences.
    """
    if context >= critical_context(shape, hardware, positions):
        return None
    low, high = 0, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        free = step(shape, hardware, middle, positions, context).regime != "arithmetic"
        low, high = (middle, high) if free else (low, middle)
    return low

"""The time of one pass of a target from what it must read and compute, and the regimes that follow.

Knows peak rates and a model's shape; not kernels. A pass over ``batch`` sequences of ``context`` cached tokens with
``positions`` new tokens each takes max(memory, arithmetic) + link + overhead: weights and caches are read once a pass,
arithmetic grows with the positions. Peak rates make it a lower bound.

- *free* regime: memory is the longer, so verifying more positions costs a dense model nothing (a mixture of experts
  reads more experts for more positions: see `experts`, and `cheap_batches` for where it costs next to nothing);
- above the *critical context* a sequence adds more reading than arithmetic, so no batch ever leaves the free regime
  (the critical sequence length of MagicDec, arXiv 2408.11049);
- within the free regime, *weights* or *kv* says which of the two reads is the larger.

Several GPUs split weights, products and key-value heads (tensor parallel) and add two all-reduces a layer, each moving
2 (gpus - 1) / gpus of its tokens' hidden states at bf16, not overlapped with anything.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.speedup_model.shape import Shape

SCAN = 1 << 20  # sequences: where the search for the end of a regime stops
ASSUMES = (
    "peak rates of the data sheet: every time is a lower bound",
    "all weights are read once a pass, the input embedding too; activations are not counted",
    "several GPUs, of one machine: all-reduces at the link's peak, not overlapped, their latency in the overhead",
    "experts are chosen uniformly and independently",
)


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """Accelerators of one kind at their published peaks; all rates are of one of the ``gpus``."""

    source: str
    flops: Mapping[str, float]  # dense operations a second, by precision of the products
    bandwidth: float  # bytes a second of device memory
    memory: float  # bytes
    link: float  # bytes a second to the other GPUs, one direction
    gpus: int = 1

    def rate(self, precision: str) -> float:
        """Operations a second at ``precision``; at bf16 where the hardware has no such products."""
        return self.flops.get(precision, self.flops["bf16"])


@dataclass(frozen=True)
class Step:
    """The parts of a pass, in seconds."""

    weights_s: float
    kv_s: float
    arithmetic_s: float
    link_s: float
    overhead_s: float

    @property
    def seconds(self) -> float:
        """Time of the pass."""
        return max(self.weights_s + self.kv_s, self.arithmetic_s) + self.link_s + self.overhead_s

    @property
    def regime(self) -> str:
        """``weights`` or ``kv`` (memory-bound, by the larger read), or ``arithmetic``."""
        if self.arithmetic_s > self.weights_s + self.kv_s:
            return "arithmetic"
        return "kv" if self.kv_s > self.weights_s else "weights"


def step(shape: Shape, hardware: Hardware, batch: int, positions: int, context: float, overhead_s: float = 0.0) -> Step:
    """One pass of ``positions`` new tokens for each of ``batch`` sequences."""
    return ragged_step(shape, hardware, batch, batch * positions, context, overhead_s)


def ragged_step(
    shape: Shape, hardware: Hardware, batch: int, tokens: float, context: float, overhead_s: float = 0.0
) -> Step:
    """One pass of ``tokens`` new tokens, shared out in any way among ``batch`` sequences."""
    return Step(
        weights_s=shape.bytes_read(tokens) / hardware.gpus / hardware.bandwidth,
        kv_s=batch * context * _cached_token_s(shape, hardware),
        arithmetic_s=tokens * _position_s(shape, hardware, context),
        link_s=tokens * _link_s(shape, hardware),
        overhead_s=overhead_s,
    )


def _cached_token_s(shape: Shape, hardware: Hardware) -> float:
    """Reading one cached token."""
    return shape.kv_bytes * shape.cache_share(hardware.gpus) / hardware.bandwidth


def _position_s(shape: Shape, hardware: Hardware, context: float) -> float:
    """Arithmetic of one new position: two operations a parameter used, and attention over ``context`` tokens."""
    products = 2 * shape.active / hardware.rate(shape.arithmetic)
    return (products + context * shape.attention_flops / hardware.rate("bf16")) / hardware.gpus


def _link_s(shape: Shape, hardware: Hardware) -> float:
    """All-reduces of one new position."""
    moved = 2 * shape.layers * 2 * (hardware.gpus - 1) / hardware.gpus * shape.hidden * 2
    return moved / hardware.link


def growth(shape: Shape, hardware: Hardware, positions: int, context: float) -> float:
    """Seconds that one more sequence adds to a pass over very many: what is left of its time a sequence."""
    reading = context * _cached_token_s(shape, hardware)
    computing = positions * _position_s(shape, hardware, context)
    return max(reading, computing) + positions * _link_s(shape, hardware)


def critical_context(shape: Shape, hardware: Hardware, positions: int) -> float:
    """Cached tokens above which a sequence's reading outlasts its arithmetic; inf if attention never lets it."""
    products = positions * _position_s(shape, hardware, 0)
    attention = positions * (_position_s(shape, hardware, 1) - _position_s(shape, hardware, 0))
    margin = _cached_token_s(shape, hardware) - attention
    return products / margin if margin > 0 else math.inf


def free_batch(shape: Shape, hardware: Hardware, positions: int, context: float) -> int | None:
    """The largest batch whose pass of ``positions`` is still memory-bound; None: every batch is.

    Stepwise for a mixture of experts, whose weight reads grow with the batch; the scan ends at `SCAN` sequences.
    """
    if context >= critical_context(shape, hardware, positions):
        return None
    return _last(lambda batch: step(shape, hardware, batch, positions, context).regime != "arithmetic", 0)


def cheap_batches(
    shape: Shape, hardware: Hardware, positions: int, context: float, slack: float = 0.1, overhead_s: float = 0.0
) -> tuple[int, int] | None:
    """First and last batch whose pass of ``positions`` takes at most 1 + ``slack`` times that of one; None: no batch.

    A dense model starts at 1. A mixture starts where one position a sequence reads most experts anyway. The last is
    `SCAN` - 1 where it never ends.
    """

    def cheap(batch: int) -> bool:
        one, many = (step(shape, hardware, batch, n, context, overhead_s).seconds for n in (1, positions))
        return many <= (1 + slack) * one

    first = next((batch for batch in _grid() if cheap(batch)), None)
    if first is None:
        return None
    while first > 1 and cheap(first - 1):
        first -= 1
    return first, _last(cheap, first)


def least_dear_batch(
    shape: Shape, hardware: Hardware, positions: int, context: float, overhead_s: float = 0.0
) -> tuple[int, float]:
    """The batch at which a pass of ``positions`` costs least in passes of one, and that cost."""

    def ratio(batch: int) -> float:
        many, one = (step(shape, hardware, batch, n, context, overhead_s).seconds for n in (positions, 1))
        return many / one

    best = min(_grid(), key=ratio)
    return best, ratio(best)


def _grid() -> list[int]:
    """Batches from 1 to `SCAN`, each at most 5 % above the one before it."""
    found = [1]
    while found[-1] < SCAN:
        found.append(max(found[-1] + 1, int(found[-1] * 1.05)))
    return found


def _last(holds: Callable[[int], bool], first: int) -> int:
    """The last batch from ``first`` on for which ``holds``, which once false stays false."""
    low, high = first, SCAN
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low

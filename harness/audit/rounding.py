"""What arithmetic of a given precision may move in a target distribution: how far two honest servers can be apart.

A verification pass multiplies matrices of another shape than a decoding step, so logits agree to rounding only: two
nearly equal tokens may swap, and a token at the border of a cut may fall on either side of it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rounding:
    """``nats``: gap of two log-probabilities that rounding can close. ``mass``: probability that it can move."""

    nats: float
    mass: float


# nats: bf16 logits near 16 to 32 are 0.125 apart, so two spacings; fp32 sums of a few thousand products are good to
# about 1e-5 of logits below 100. mass: prefill against verification of the mini target in bf16 differ by a total
# variation of 0.002 on average and 0.02 at most (60 contexts); in fp32 by less than 1e-5.
ROUNDING = {
    "float32": Rounding(nats=1e-3, mass=1e-4),
    "float16": Rounding(nats=0.03, mass=0.005),
    "bfloat16": Rounding(nats=0.25, mass=0.05),
}

"""Temperature 0: token for token against autoregressive decoding, and what a first difference means.

Knows output ids and the target's top-2 margins; not servers. A verification pass multiplies matrices of another shape
than a decoding step, so two tokens whose logits agree to rounding may swap: such a near-tie is told from a bug by the
target's own margin there, and by how often autoregressive decoding differs from itself at the same batch size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Largest gap of two log-probabilities (nats) that rounding can close. bf16 logits near 16 to 32 are 0.125 apart, so two
# spacings; fp32 sums of a few thousand products are good to about 1e-5 of logits below 100.
NEAR_TIE = {"float32": 1e-3, "float16": 0.03, "bfloat16": 0.25}


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The first difference of one prompt: at token ``position``, where AR's two best were ``margin`` nats apart."""

    prompt: str
    position: int
    expected: int | None  # None: the output is longer than AR's
    seen: int | None
    margin: float


def first_divergence(
    prompt: str, expected: Sequence[int], margins: Sequence[float], seen: Sequence[int]
) -> Divergence | None:
    """Where ``seen`` leaves AR's ``expected``; None if they are equal. ``margins`` runs along ``expected``."""
    for place, (a, b) in enumerate(zip(expected, seen, strict=False)):
        if a != b:
            return Divergence(prompt=prompt, position=place, expected=a, seen=b, margin=margins[place])
    if len(expected) == len(seen):
        return None
    place = min(len(expected), len(seen))
    return Divergence(
        prompt=prompt,
        position=place,
        expected=expected[place] if place < len(expected) else None,
        seen=seen[place] if place < len(seen) else None,
        margin=float("inf"),
    )


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """The comparison of one arm at one concurrency with AR, and AR's with itself at that concurrency."""

    concurrency: int
    prompts: int
    tokens: int
    divergences: tuple[Divergence, ...]
    control: tuple[Divergence, ...]  # AR at this concurrency against AR at concurrency 1
    tolerance: float

    @property
    def bugs(self) -> tuple[Divergence, ...]:
        """Differences that rounding cannot explain."""
        return tuple(d for d in self.divergences if d.margin > self.tolerance)


def compare(
    expected: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    seen: Mapping[str, Sequence[int]],
    control: Mapping[str, Sequence[int]],
    concurrency: int,
    dtype: str,
) -> Greedy:
    """Prompt by prompt; ``expected`` maps a prompt to AR's ids and margins at concurrency 1."""

    def differences(outputs: Mapping[str, Sequence[int]]) -> tuple[Divergence, ...]:
        found = (first_divergence(name, *expected[name], ids) for name, ids in outputs.items())
        return tuple(d for d in found if d is not None)

    return Greedy(
        concurrency=concurrency,
        prompts=len(seen),
        tokens=sum(map(len, seen.values())),
        divergences=differences(seen),
        control=differences(control),
        tolerance=NEAR_TIE[dtype],
    )

"""Temperature 0: token for token against autoregressive decoding, and what a first difference means.

Knows output ids and the target's likeliest tokens; not servers. Two tokens whose logits agree to rounding may swap:
such a near-tie is told from a bug by how far the token that was seen lies below the target's best there. How often
autoregressive decoding differs from itself at the same batch size stands beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.audit.rounding import ROUNDING
from harness.audit.target_distribution import Raw

HEAD = 8  # likeliest tokens of a place among which a near-tie is looked for


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The first difference of a prompt: at token ``position``, where ``seen`` lies ``margin`` nats below AR's best."""

    prompt: str
    position: int
    expected: int | None  # None: the output is longer than AR's
    seen: int | None
    margin: float


def first_divergence(
    prompt: str, expected: Sequence[int], places: Sequence[Raw], seen: Sequence[int]
) -> Divergence | None:
    """Where ``seen`` leaves AR's ``expected``; None if they are equal. ``places`` runs along ``expected``."""
    for place, (a, b) in enumerate(zip(expected, seen, strict=False)):
        if a != b:
            return Divergence(prompt=prompt, position=place, expected=a, seen=b, margin=_margin(places[place], b))
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


def _margin(place: Raw, token: int) -> float:
    """Nats between the best token and ``token``; infinite where it is not among the likeliest."""
    found = place.logprobs[place.tokens == token]
    return float(place.logprobs[0] - found[0]) if len(found) else float("inf")


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """The comparison of one arm at one concurrency with AR, and AR's with itself at that concurrency."""

    concurrency: int
    prompts: int
    tokens: int  # compared: those before a first difference, and that one
    divergences: tuple[Divergence, ...]
    control: tuple[Divergence, ...] | None  # AR at this concurrency against AR at 1; None where it is the same run
    tolerance: float

    @property
    def bugs(self) -> tuple[Divergence, ...]:
        """Differences that rounding cannot explain."""
        return tuple(d for d in self.divergences if d.margin > self.tolerance)


def compare(
    expected: Mapping[str, tuple[Sequence[int], Sequence[Raw]]],
    seen: Mapping[str, Sequence[int]],
    control: Mapping[str, Sequence[int]] | None,
    concurrency: int,
    dtype: str,
) -> Greedy:
    """Prompt by prompt; ``expected`` maps a prompt to AR's ids at concurrency 1 and the likeliest tokens there."""

    def differences(outputs: Mapping[str, Sequence[int]]) -> tuple[Divergence, ...]:
        found = (first_divergence(name, *expected[name], ids) for name, ids in outputs.items())
        return tuple(d for d in found if d is not None)

    left = differences(seen)
    ends = {d.prompt: d.position + 1 for d in left}
    return Greedy(
        concurrency=concurrency,
        prompts=len(seen),
        tokens=sum(ends.get(name, len(ids)) for name, ids in seen.items()),
        divergences=left,
        control=None if control is None else differences(control),
        tolerance=ROUNDING[dtype].nats,
    )

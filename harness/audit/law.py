"""The exact law of a request's first tokens, from the target's own probabilities.

Knows conditionals p(next | prefix) as the target's server reports them, and how a request's settings reshape them; not
how they were asked for. A law holds the prefixes that are likely enough to be seen often, and no others: what is
outside is lumped by the tests.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Prefix = tuple[int, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """A request's sampling settings; temperature > 0."""

    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0

    @property
    def label(self) -> str:
        """For tables: ``T=1``, ``T=0.8 top-k 8``."""
        parts = [f"T={self.temperature:g}"]
        parts += [f"top-k {self.top_k}"] if self.top_k > 0 else []
        parts += [f"top-p {self.top_p:g}"] if self.top_p < 1 else []
        return " ".join(parts)


@dataclass(frozen=True)
class Raw:
    """Log-probabilities at temperature 1, likeliest first; the whole vocabulary, or its head."""

    tokens: NDArray[np.int64]
    logprobs: Floats


def processed(logprobs: Floats, sampling: Sampling) -> Floats:
    """Probabilities after temperature, top-k, top-p (in this order, as SGLang 0.5.23 verifies), likeliest first.

    ``logprobs`` must be sorted; at temperature 1 without truncation a missing tail stays missing.
    """
    if sampling == Sampling():
        return np.exp(logprobs)
    p = np.exp((logprobs - logprobs[0]) / sampling.temperature)
    if sampling.top_k > 0:
        p[sampling.top_k :] = 0
    p /= p.sum()
    before = p.cumsum() - p
    p[before > sampling.top_p] = 0
    return np.asarray(p / p.sum())


@dataclass(frozen=True)
class Law:
    """p(next | prefix) of one prompt under one setting, for the prefixes it knows; likeliest token first."""

    conditionals: Mapping[Prefix, Mapping[int, float]]

    def joint(self, tokens: Prefix) -> float | None:
        """Probability that a request starts with ``tokens``; None where a conditional is unknown."""
        total = 1.0
        for place, token in enumerate(tokens):
            known = self.conditionals.get(tokens[:place])
            if known is None:
                return None
            total *= known.get(token, 0.0)
        return total

    def sequences(self, length: int, floor: float) -> dict[Prefix, float]:
        """Every known sequence of ``length`` tokens at least ``floor`` likely, with its probability."""
        level: dict[Prefix, float] = {(): 1.0}
        for _ in range(length):
            level = {
                (*prefix, token): mass * p
                for prefix, mass in level.items()
                for token, p in self.conditionals.get(prefix, {}).items()
                if mass * p >= floor
            }
        return level


def law(raw: Mapping[Prefix, Raw], sampling: Sampling) -> Law:
    """The law under ``sampling``; tokens of probability zero are kept, so that seeing one is noticed."""
    return Law(
        {
            prefix: dict(zip(r.tokens.tolist(), processed(r.logprobs, sampling).tolist(), strict=True))
            for prefix, r in raw.items()
        }
    )


async def grow(
    ask: Callable[[Sequence[Prefix]], Awaitable[Sequence[Raw]]], settings: Sequence[Sampling], depth: int, floor: float
) -> dict[Prefix, Raw]:
    """Conditionals of every prefix shorter than ``depth`` that is at least ``floor`` likely under some setting."""
    raw: dict[Prefix, Raw] = {}
    frontier: dict[Prefix, Floats] = {(): np.ones(len(settings))}
    for _ in range(depth):
        raw |= zip(frontier, await ask(list(frontier)), strict=True)
        frontier = {
            (*prefix, int(token)): mass
            for prefix, before in frontier.items()
            for token, mass in zip(raw[prefix].tokens, _children(raw[prefix], settings, before), strict=True)
            if mass.max() >= floor
        }
    return raw


def _children(raw: Raw, settings: Sequence[Sampling], mass: Floats) -> Floats:
    """Joint probability of every child: [tokens, settings]."""
    return np.stack([processed(raw.logprobs, s) for s in settings], axis=1) * mass

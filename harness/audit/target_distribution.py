"""The exact distribution of a request's next tokens, from the target's own probabilities.

Knows conditionals p(next | prefix) as the target's server reports them, and how a request's settings reshape them; not
how they were asked for. A distribution holds the prefixes that are likely enough to be seen often, and no others: what
is outside is lumped by the tests.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from harness.audit.rounding import Rounding

Prefix = tuple[int, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SamplingRule:
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


def processed(logprobs: Floats, sampling: SamplingRule) -> Floats:
    """Probabilities after temperature, top-k, top-p (in this order, as SGLang 0.5.23 verifies), likeliest first.

    ``logprobs`` must be sorted, and normalised over the whole vocabulary: at temperature 1 the mass of a missing tail
    stays missing until a cut leaves it out.
    """
    p = np.exp(logprobs)
    if sampling == SamplingRule():
        return p
    if sampling.temperature != 1:
        p = np.exp((logprobs - logprobs[0]) / sampling.temperature)
        p /= p.sum()
    if sampling.top_k > 0:
        p[sampling.top_k :] = 0
        p /= p.sum()
    p[p.cumsum() - p > sampling.top_p] = 0
    return np.asarray(p / p.sum())


def complete(raw: Raw, sampling: SamplingRule) -> bool:
    """Does the head hold every token that ``sampling`` keeps; else the distribution after a cut is not known."""
    if sampling == SamplingRule() or 0 < sampling.top_k <= len(raw.tokens):
        return True
    mass = float(np.exp(raw.logprobs).sum())
    return mass > (sampling.top_p if sampling.temperature == 1 and sampling.top_p < 1 else 1 - 1e-6)


def near(logprobs: Floats, sampling: SamplingRule, rounding: Rounding) -> NDArray[np.bool_]:
    """Tokens that a cut keeps, or would keep if rounding moved its border."""
    kept = np.ones(len(logprobs), dtype=bool)
    if 0 < sampling.top_k <= len(logprobs):
        kept &= logprobs >= logprobs[sampling.top_k - 1] - rounding.nats
    if sampling.top_p < 1:
        p = processed(logprobs, replace(sampling, top_p=1.0))
        kept &= p.cumsum() - p <= sampling.top_p + rounding.mass
    return kept


@dataclass(frozen=True)
class TargetDistribution:
    """p(next | prefix) of one place under one setting, for the prefixes it knows; likeliest token first."""

    conditionals: Mapping[Prefix, Mapping[int, float]]  # without tokens of probability zero
    allowed: Mapping[Prefix, frozenset[int]] = field(default_factory=dict)  # where a cut is made: what may pass it

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


def target_distribution(raw: Mapping[Prefix, Raw], sampling: SamplingRule, rounding: Rounding) -> TargetDistribution:
    """The distribution under ``sampling``; prefixes after which the head is too short for it are left out."""
    known = {prefix: r for prefix, r in raw.items() if complete(r, sampling)}
    conditionals = {}
    for prefix, r in known.items():
        p = processed(r.logprobs, sampling)
        kept = p > 0
        conditionals[prefix] = dict(zip(r.tokens[kept].tolist(), p[kept].tolist(), strict=True))
    if sampling.top_k <= 0 and sampling.top_p >= 1:
        return TargetDistribution(conditionals)
    return TargetDistribution(
        conditionals, {x: frozenset(r.tokens[near(r.logprobs, sampling, rounding)].tolist()) for x, r in known.items()}
    )


async def grow(
    ask: Callable[[Sequence[Prefix]], Awaitable[Sequence[Raw]]],
    settings: Sequence[SamplingRule],
    depth: int,
    floor: float,
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


def _children(raw: Raw, settings: Sequence[SamplingRule], mass: Floats) -> Floats:
    """Joint probability of every child: [tokens, settings]."""
    return np.stack([processed(raw.logprobs, s) for s in settings], axis=1) * mass

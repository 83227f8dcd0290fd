"""What the target itself does: its greedy answers with margins, and the exact distribution of sampled first tokens.

Asked once of the autoregressive server and then compared with every arm. What is sampled is the answer from a place
where the target is in doubt, but not more than need be: where one token is likely every rule, right or wrong, gives
that token, and where a hundred are none comes often enough to be judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.audit import greedy
from harness.audit.probe import Probe
from harness.audit.rounding import ROUNDING
from harness.audit.target_distribution import Prefix, Raw, SamplingRule, TargetDistribution, grow, target_distribution
from harness.schema.failure import Failure
from harness.serve.client import Sampling as Request

HEAD = 8192  # tokens of a distribution that are asked for; all of a small vocabulary
LEAST = 2.0  # samples that a prefix must expect for its conditional to be worth asking
PLAIN = SamplingRule()


@dataclass(frozen=True, kw_only=True)
class Design:
    """How much is asked of each arm."""

    samples: int = 4000  # at temperature 1 and `bulk`; a quarter where truncated or deep, an eighth at each concurrency
    bulk: int = 32  # requests sent together, where many samples are wanted
    depth: int = 4  # tokens in doubt that are tested
    sure: int = 8  # tokens that precede them at the deep place, so that late slots of a block are reached
    greedy_prompts: int = 12
    greedy_tokens: int = 64
    concurrency: tuple[int, int] = (1, 4)
    level: float = 1e-3  # odds of a false alarm, all tests of a certificate together
    untruncated: SamplingRule = PLAIN
    # one cut at a time: with both, SGLang 0.5.23 itself uses two orders (docs/exactness.md)
    truncated: tuple[SamplingRule, ...] = (SamplingRule(temperature=0.8, top_k=12), SamplingRule(top_p=0.9))

    @property
    def settings(self) -> tuple[SamplingRule, ...]:
        """All sampling settings."""
        return (self.untruncated, *self.truncated)

    @property
    def batches(self) -> Iterator[tuple[bool, SamplingRule, int, int]]:
        """(deep place, setting, concurrency, samples) of everything that is asked of an arm at temperature 1."""
        yield False, self.untruncated, self.bulk, self.samples
        yield from ((False, self.untruncated, c, self.samples // 8) for c in self.concurrency)
        yield from ((False, setting, self.bulk, self.samples // 4) for setting in self.truncated)
        yield True, self.untruncated, self.bulk, self.samples // 4

    @property
    def total(self) -> int:
        """Samples of one arm, all settings together."""
        return sum(samples for *_, samples in self.batches)


@dataclass(frozen=True, kw_only=True)
class ProbePlace:
    """Where sampled answers begin: after a prompt and the first ``after`` tokens of the target's greedy answer."""

    prompt: str  # id
    after: int
    ids: Prefix  # the prompt and those tokens
    sure: int  # tokens from there on that the target hardly doubts; those in doubt follow


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A place and the target's distributions from there on."""

    place: ProbePlace
    raw: Mapping[Prefix, Raw]
    _known: dict[tuple[SamplingRule, str], TargetDistribution] = field(default_factory=dict)

    def distribution(self, sampling: SamplingRule, dtype: str) -> TargetDistribution:
        """The exact distribution under ``sampling``, as far as a server in ``dtype`` can know it."""
        key = (sampling, dtype)
        if key not in self._known:
            self._known[key] = target_distribution(self.raw, sampling, ROUNDING[dtype])
        return self._known[key]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The target's own behaviour."""

    prompts: Mapping[str, Prefix]  # id -> rendered token ids, of those compared at temperature 0
    greedy: Mapping[str, tuple[Prefix, list[Raw]]]  # id -> answer and likeliest tokens, one at a time
    control: Mapping[str, Prefix]  # the same answers at the higher concurrency
    near: Spot  # the next tokens are in doubt
    deep: Spot  # `Design.sure` tokens come first


async def ask(probe: Probe, prompts: Mapping[str, Prefix], vocabulary: int, design: Design) -> Reference:
    """Everything above, from the target's autoregressive server. Raises `Failure`."""
    head = min(vocabulary, HEAD)
    found = {name: await probe.greedy(ids, design.greedy_tokens, greedy.HEAD) for name, ids in prompts.items()}
    compared = dict(list(prompts.items())[:: max(1, len(prompts) // design.greedy_prompts)])
    request = Request(temperature=0, max_new_tokens=design.greedy_tokens, ignore_eos=False)
    together = await probe.answers(list(compared.values()), request, design.concurrency[1])

    async def spot(sure: int, settings: Sequence[SamplingRule], samples: int) -> Spot:
        place = in_doubt(prompts, found, sure, design.depth)

        async def after(prefixes: Sequence[Prefix]) -> list[Raw]:
            return await probe.conditionals([place.ids + p for p in prefixes], head)

        return Spot(place=place, raw=await grow(after, settings, sure + design.depth, LEAST / samples))

    return Reference(
        prompts=compared,
        greedy={name: found[name] for name in compared},
        control=dict(zip(compared, (a.output_ids for a in together), strict=True)),
        near=await spot(0, design.settings, design.samples),
        deep=await spot(design.sure, [design.untruncated], design.samples // 4),
    )


def in_doubt(
    prompts: Mapping[str, Prefix], greedy_: Mapping[str, tuple[Prefix, Sequence[Raw]]], sure: int, depth: int
) -> ProbePlace:
    """Of all places in the greedy answers, the one whose ``depth`` likeliest tokens are nearest to half the mass.

    That is, of largest mean p (1 - p): the variance of "the likeliest token comes". A drafter that guesses that token
    is as often accepted as rejected there, and a bias of its share is seen with the fewest samples. With ``sure``, that
    many tokens come first, and the mean counts with their probability. Raises `Failure` where no answer is long enough.
    """
    best, place = -1.0, None
    for name, (answer, places) in greedy_.items():
        p = np.exp([float(raw.logprobs[0]) for raw in places])
        for start in range(len(p) - sure - depth + 1):
            lead, rest = p[start : start + sure], p[start + sure : start + sure + depth]
            doubt = float(lead.prod() * (rest * (1 - rest)).mean())
            if doubt > best:
                ids = prompts[name] + answer[:start]
                best, place = doubt, ProbePlace(prompt=name, after=start, ids=ids, sure=sure)
    if place is None:
        raise Failure("invalid", f"no greedy answer of the target has {sure + depth} tokens: choose another --set")
    return place

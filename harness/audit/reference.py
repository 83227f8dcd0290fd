"""What the target itself does: its greedy answers with margins, and the exact law of sampled first tokens.

Asked once of the autoregressive server and then compared with every arm. What is sampled is the answer from a place
where the target is in doubt, but not more than need be: where one token is likely every rule, right or wrong, gives
that token, and where a hundred are none comes often enough to be judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.audit.law import Law, Prefix, Raw, Sampling, grow, law
from harness.audit.probe import Probe
from harness.client import Sampling as Request
from harness.failure import Failure

HEAD = 8192  # tokens of a distribution that are asked for; all of a small vocabulary
LEAST = 2.0  # samples that a prefix must expect for its conditional to be worth asking
PLAIN = Sampling()


@dataclass(frozen=True, kw_only=True)
class Design:
    """How much is asked of each arm."""

    samples: int = 4000  # at temperature 1 and `bulk`; a quarter where truncated, an eighth at each concurrency
    bulk: int = 32  # requests sent together, where many samples are wanted
    depth: int = 4  # tokens tested: one of the prefill, the others of verify blocks
    greedy_prompts: int = 12
    greedy_tokens: int = 64
    concurrency: tuple[int, int] = (1, 4)
    level: float = 1e-3  # odds of a false alarm, all tests of a certificate together
    untruncated: Sampling = PLAIN
    # one cut at a time: with both, SGLang 0.5.23 itself uses two orders (docs/exactness.md)
    truncated: tuple[Sampling, ...] = (Sampling(temperature=0.8, top_k=12), Sampling(top_p=0.9))

    @property
    def settings(self) -> tuple[Sampling, ...]:
        """All sampling settings."""
        return (self.untruncated, *self.truncated)

    @property
    def batches(self) -> Iterator[tuple[Sampling, int, int]]:
        """(setting, concurrency, samples) of everything that is asked of an arm at temperature 1."""
        yield self.untruncated, self.bulk, self.samples
        yield from ((self.untruncated, c, self.samples // 8) for c in self.concurrency)
        yield from ((setting, self.bulk, self.samples // 4) for setting in self.truncated)

    @property
    def total(self) -> int:
        """Samples of one arm, all settings together."""
        return sum(samples for _, _, samples in self.batches)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where sampled answers begin: after a prompt and the first ``after`` tokens of the target's greedy answer."""

    prompt: str  # id
    after: int
    ids: Prefix  # the prompt and those tokens


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The target's own behaviour."""

    prompts: Mapping[str, Prefix]  # id -> rendered token ids, of those compared at temperature 0
    greedy: Mapping[str, tuple[Prefix, list[float]]]  # id -> answer and margins (nats), one at a time
    control: Mapping[str, Prefix]  # the same answers at the higher concurrency
    place: Place
    raw: Mapping[Prefix, Raw]  # conditionals from that place on

    def law(self, sampling: Sampling) -> Law:
        """The exact law under ``sampling``."""
        return law(self.raw, sampling)


async def ask(probe: Probe, prompts: Mapping[str, Prefix], vocabulary: int, design: Design) -> Reference:
    """Everything above, from the target's autoregressive server. Raises `Failure`."""
    head = min(vocabulary, HEAD)
    found = {name: await probe.greedy(ids, design.greedy_tokens) for name, ids in prompts.items()}
    compared = dict(list(prompts.items())[:: max(1, len(prompts) // design.greedy_prompts)])
    request = Request(temperature=0, max_new_tokens=design.greedy_tokens, ignore_eos=False)
    together = await probe.answers(list(compared.values()), request, design.concurrency[1])
    place = in_doubt(prompts, found, design.depth)

    async def after(prefixes: Sequence[Prefix]) -> list[Raw]:
        return await probe.conditionals([place.ids + p for p in prefixes], head)

    return Reference(
        prompts=compared,
        greedy={name: (found[name][0], _margins(found[name][1])) for name in compared},
        control=dict(zip(compared, (a.output_ids for a in together), strict=True)),
        place=place,
        raw=await grow(after, design.settings, design.depth, LEAST / design.samples),
    )


def in_doubt(prompts: Mapping[str, Prefix], greedy: Mapping[str, tuple[Prefix, Sequence[Raw]]], depth: int) -> Place:
    """Of all places in the greedy answers, the one whose next ``depth`` likeliest tokens are nearest to half the mass.

    That is, of largest mean p (1 - p): the variance of "the likeliest token comes". A drafter that guesses that token
    is as often accepted as rejected there, and a bias of its share is seen with the fewest samples. Raises `Failure`
    where no answer has ``depth`` tokens.
    """
    best, place = -1.0, None
    for name, (answer, places) in greedy.items():
        p = np.exp([float(raw.logprobs[0]) for raw in places])
        for start in range(len(p) - depth + 1):
            doubt = float(np.mean((p * (1 - p))[start : start + depth]))
            if doubt > best:
                best, place = doubt, Place(prompt=name, after=start, ids=prompts[name] + answer[:start])
    if place is None:
        raise Failure("invalid", f"no greedy answer of the target has {depth} tokens: choose another --set")
    return place


def _margins(places: Sequence[Raw]) -> list[float]:
    return [float(raw.logprobs[0] - raw.logprobs[1]) for raw in places]

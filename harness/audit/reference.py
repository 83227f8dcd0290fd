"""What the target itself does: its greedy answers with margins, and the exact law of sampled first tokens.

Asked once of the autoregressive server and then compared with every arm. The prompt that is sampled is one where the
target is in doubt, but not more than need be: on a prompt with one likely answer every rule, right or wrong, gives that
answer, and on one with a hundred no answer comes often enough to be judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.audit.law import Law, Prefix, Raw, Sampling, grow, law
from harness.audit.probe import Probe
from harness.client import Sampling as Request

HEAD = 8192  # tokens of a distribution that are asked for; all of a small vocabulary
LEAST = 2.0  # samples that a prefix must expect for its conditional to be worth asking
PLAIN = Sampling()
DOUBT = 0.8  # nats, mean over the first tokens: two or three likely tokens, so that drafts are accepted and rejected


@dataclass(frozen=True, kw_only=True)
class Design:
    """How much is asked of each arm."""

    samples: int = 4000  # at temperature 1 and `bulk`; a quarter where truncated, a 16th at each concurrency
    bulk: int = 32  # requests sent together, where many samples are wanted
    depth: int = 4  # first tokens tested: one of the prefill, the others of verify blocks
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


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The target's own behaviour."""

    prompts: Mapping[str, Prefix]  # id -> rendered token ids, of those compared at temperature 0
    greedy: Mapping[str, tuple[Prefix, list[float]]]  # id -> answer and margins (nats), one at a time
    control: Mapping[str, Prefix]  # the same answers at the higher concurrency
    sampled: str  # id of the prompt whose first tokens are sampled
    sampled_ids: Prefix
    raw: Mapping[Prefix, Raw]  # conditionals after that prompt

    def law(self, sampling: Sampling) -> Law:
        """The exact law under ``sampling``."""
        return law(self.raw, sampling)


async def ask(probe: Probe, prompts: Mapping[str, Prefix], vocabulary: int, design: Design) -> Reference:
    """Everything above, from the target's autoregressive server. Raises `Failure`."""
    head = min(vocabulary, HEAD)
    compared = dict(list(prompts.items())[:: max(1, len(prompts) // design.greedy_prompts)])
    greedy, doubt = {}, {}
    for name, ids in compared.items():
        answer, places = await probe.greedy(ids, design.greedy_tokens)
        greedy[name] = (answer, [float(p.logprobs[0] - p.logprobs[1]) for p in places])
    for name, ids in prompts.items():
        _, first = await probe.greedy(ids, design.depth, head)
        doubt[name] = float(np.mean([_entropy(p) for p in first]))
    request = Request(temperature=0, max_new_tokens=design.greedy_tokens, ignore_eos=False)
    together = await probe.answers(list(compared.values()), request, design.concurrency[1])
    sampled = min(doubt, key=lambda name: (doubt[name] < DOUBT, abs(doubt[name] - DOUBT)))

    async def after(prefixes: Sequence[Prefix]) -> list[Raw]:
        return await probe.conditionals([prompts[sampled] + p for p in prefixes], head)

    return Reference(
        prompts=compared,
        greedy=greedy,
        control=dict(zip(compared, (a.output_ids for a in together), strict=True)),
        sampled=sampled,
        sampled_ids=prompts[sampled],
        raw=await grow(after, design.settings, design.depth, LEAST / design.samples),
    )


def _entropy(raw: Raw) -> float:
    p = np.exp(raw.logprobs)
    return float(-(p * raw.logprobs).sum())

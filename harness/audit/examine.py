"""One arm against the reference: what its servers are asked, and the tests of their answers.

Knows how to ask a running server; starting it is `session`'s. Raises `Failure` where a server fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.audit.certificate import Sampled
from harness.audit.chisquare import Test, impossible_test, joint_test, likeliest_test, position_test
from harness.audit.greedy import Greedy, compare
from harness.audit.probe import Probe
from harness.audit.reference import Design, Reference
from harness.audit.target_distribution import Prefix, SamplingRule, TargetDistribution
from harness.serve.client import Sampling as Request
from harness.serve.responses import Answer

FINGERPRINT = (6, 16)  # requests and tokens of the seed check


@dataclass(frozen=True)
class Examiner:
    """Asks a server of an arm, which computes in ``dtype`` and drafts ``drafted`` tokens a block."""

    reference: Reference
    design: Design
    dtype: str
    drafted: int

    async def fingerprint(self, probe: Probe) -> list[Prefix]:
        """The first samples of a fresh server, one at a time: the same only for the same seed."""
        count, tokens = FINGERPRINT
        ids = self.reference.near.place.ids
        answers = await probe.samples(ids, self.design.untruncated, tokens, count, concurrency=1)
        return [a.output_ids for a in answers]

    async def examine(self, probe: Probe) -> tuple[tuple[Greedy, ...], tuple[Sampled, ...]]:
        """Everything else that is asked of an arm."""
        return await self.greedy(probe), tuple([await self.sampled(probe, *batch) for batch in self.design.batches])

    async def greedy(self, probe: Probe) -> tuple[Greedy, ...]:
        """Temperature 0 at both concurrencies."""
        prompts = self.reference.prompts
        request = Request(temperature=0, max_new_tokens=self.design.greedy_tokens, ignore_eos=False)
        found = []
        for concurrency in self.design.concurrency:
            answers = await probe.answers(list(prompts.values()), request, concurrency)
            seen = dict(zip(prompts, (a.output_ids for a in answers), strict=True))
            control = self.reference.control if concurrency > 1 else None
            found.append(compare(self.reference.greedy, seen, control, concurrency, self.dtype))
        return tuple(found)

    async def sampled(self, probe: Probe, deep: bool, sampling: SamplingRule, concurrency: int, count: int) -> Sampled:
        """``count`` samples under one setting, tested."""
        spot = self.reference.deep if deep else self.reference.near
        length = spot.place.sure + self.design.depth
        answers = await probe.samples(spot.place.ids, sampling, length, count, concurrency)
        setting = f"{sampling.label} deep" if deep else sampling.label
        exact = spot.distribution(sampling, self.dtype)
        return Sampled(
            setting=setting,
            concurrency=concurrency,
            samples=count,
            blocks=sum(a.verify_ct or 0 for a in answers),
            accepted=sum(a.correct_drafts or 0 for a in answers),
            tested=sum(max(0, length - 1 - a.verify_ct) for a in answers if a.verify_ct is not None),
            rejected=sum(sum((a.histogram or ())[: self.drafted]) for a in answers),
            tests=tuple(tests(f"{setting} c={concurrency}", answers, exact, spot.place.sure, length)),
        )


def tests(name: str, answers: Sequence[Answer], exact: TargetDistribution, sure: int, length: int) -> list[Test]:
    """Every token in doubt, the first three of them together, the likeliest token, and what no cut may let pass."""
    samples = [a.output_ids for a in answers]
    found = [position_test(f"{name} token {place + 1}", samples, exact, place) for place in range(sure, length)]
    found.append(joint_test(f"{name} tokens 1-{sure + 3}", samples, exact, sure + 3))
    found.append(likeliest_test(f"{name} likeliest token", samples, exact, 1))  # from the first verify block on
    if exact.allowed:
        found.append(impossible_test(f"{name} forbidden tokens", samples, exact))
    return found

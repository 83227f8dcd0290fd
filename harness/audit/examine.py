"""One arm against the reference: what its servers are asked, and the tests of their answers.

Knows how to ask a running server; starting it is `session`'s. Raises `Failure` where a server fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.audit.certificate import Sampled
from harness.audit.chisquare import Test, impossible_test, joint_test, likeliest_test, position_test
from harness.audit.greedy import Greedy, compare
from harness.audit.law import Law, Prefix, Sampling
from harness.audit.probe import Probe
from harness.audit.reference import Design, Reference
from harness.client import Sampling as Request
from harness.wire import Answer

FINGERPRINT = (6, 16)  # requests and tokens of the seed check


@dataclass(frozen=True)
class Examiner:
    """Asks one server; ``probe`` is open."""

    probe: Probe
    reference: Reference
    design: Design

    async def fingerprint(self) -> list[Prefix]:
        """The first samples of a fresh server, one at a time: the same only for the same seed."""
        count, tokens = FINGERPRINT
        answers = await self.probe.samples(
            self.reference.place.ids, self.design.untruncated, tokens, count, concurrency=1
        )
        return [a.output_ids for a in answers]

    async def examine(self, dtype: str) -> tuple[tuple[Greedy, ...], tuple[Sampled, ...]]:
        """Everything else that is asked of an arm."""
        return await self.greedy(dtype), tuple([await self.sampled(*batch) for batch in self.design.batches])

    async def greedy(self, dtype: str) -> tuple[Greedy, ...]:
        """Temperature 0 at both concurrencies."""
        prompts, request = self.reference.prompts, self._greedy_request()
        found = []
        for concurrency in self.design.concurrency:
            answers = await self.probe.answers(list(prompts.values()), request, concurrency)
            seen = dict(zip(prompts, (a.output_ids for a in answers), strict=True))
            control = self.reference.control if concurrency > 1 else {}
            found.append(compare(self.reference.greedy, seen, control, concurrency, dtype))
        return tuple(found)

    async def sampled(self, sampling: Sampling, concurrency: int, count: int) -> Sampled:
        """``count`` samples under one setting, tested."""
        answers = await self.probe.samples(self.reference.place.ids, sampling, self.design.depth, count, concurrency)
        law = self.reference.law(sampling)
        name = f"{sampling.label} c={concurrency}"
        return Sampled(
            setting=sampling.label,
            concurrency=concurrency,
            samples=count,
            blocks=sum(a.verify_ct or 0 for a in answers),
            accepted=sum(a.correct_drafts or 0 for a in answers),
            tests=tuple(tests(name, answers, law, self.design.depth, truncated=sampling != self.design.untruncated)),
        )

    def _greedy_request(self) -> Request:
        return Request(temperature=0, max_new_tokens=self.design.greedy_tokens, ignore_eos=False)


def tests(name: str, answers: Sequence[Answer], law: Law, depth: int, truncated: bool) -> list[Test]:
    """Every place by itself, the first three together, the likeliest token, and what truncation must never let pass."""
    samples = [a.output_ids for a in answers]
    found = [position_test(f"{name} token {place + 1}", samples, law, place) for place in range(depth)]
    found.append(joint_test(f"{name} tokens 1-3", samples, law, 3))
    found.append(likeliest_test(f"{name} likeliest token", samples, law, 1))  # from the first verify block on
    if truncated:
        found.append(impossible_test(f"{name} forbidden tokens", samples, law))
    return found

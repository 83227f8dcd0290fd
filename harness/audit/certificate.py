"""A certificate: what was asked of one arm, what came out, and how far the answer can be trusted.

Knows results, not servers. `verdict` is the one rule: *fail* on a difference that neither rounding nor chance explains,
*inconclusive* when the audit could not have seen a bias worth seeing, else *pass*. `certificate_file` says for what a
certificate speaks.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from harness.audit.chisquare import POWER, Test, holm
from harness.audit.greedy import Greedy
from harness.audit.reference import ProbePlace

# Total variation that an audit must be able to see, or it is inconclusive: what the default number of samples sees on
# the mini target, computed from its distribution alone before any arm was asked.
LARGEST_BIAS = 0.10
LEAST_EVENTS = 100  # accepted drafts among the tested tokens, and rejections, that the largest sample must hold
DERIVED = ("reasons", "verdict", "samples", "smallest_p", "smallest_bias")  # in the file, beside what they follow from
RULES = 2  # of the audit; a certificate by other rules says something else and does not count


def least_samples(level: float) -> int:
    """Samples below which no audit can pass: the simplest test, of one token against all others, would miss the bias.

    ``level``: odds of a false alarm. Targets with more likely tokens need several times as many.
    """
    one = Test(name="", samples=1, df=1, statistic=0.0, p=1.0, tv=0.0)
    return math.ceil((one.smallest_bias(level) / LARGEST_BIAS) ** 2)  # what is seen falls with the root of the number


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """The samples of one setting and concurrency, and their tests."""

    setting: str
    concurrency: int
    samples: int
    blocks: int
    accepted: int  # drafts, those of a last block beyond the sampled tokens included
    tested: int  # accepted drafts that are among the sampled tokens, at least
    rejected: int  # blocks that did not accept all
    tests: tuple[Test, ...]

    @property
    def turned(self) -> int:
        """Rejections among the sampled tokens, at least: every block ends in one but an answer's last."""
        return max(0, self.blocks - self.samples)

    @property
    def tau(self) -> float | None:
        """1 + accepted drafts / blocks; None without blocks."""
        return 1 + self.accepted / self.blocks if self.blocks else None

    def smallest_bias(self, level: float) -> float:
        """Total variation between the cells of a token's test that is caught with probability `POWER`, at the worst."""
        return max((test.smallest_bias(level) for test in self.tests if test.df), default=math.inf)


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """The same requests on fresh servers: two with one seed, one with another."""

    repeats: bool
    differs: bool


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Everything that stands in the file; plain JSON but for the nested results."""

    target: str
    arm: str
    proposal: str
    target_digest: str
    draft_digest: str
    weights_date: str  # newest modification of the weights on the auditing machine, UTC
    date: str  # of the audit, UTC
    versions: Mapping[str, str]
    attestation: Mapping[str, Any]
    server: tuple[str, ...]  # server arguments that the sweep adds
    false_alarm: float  # odds that the tests of sampled tokens fail an exact arm
    prompt_set: str
    skipped: int = 0  # prompts that were looked at for a place, and too long to be asked
    place: ProbePlace
    deep: ProbePlace
    greedy: tuple[Greedy, ...]
    sampled: tuple[Sampled, ...]
    seeds: Seeds | None  # None: a server that cannot be restarted
    rules: int = RULES
    earlier: tuple[Mapping[str, Any], ...] = ()  # date, samples, verdict of audits that this one replaces

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why it is no pass; () when it is one."""
        return (*self._failures(), *self._doubts())

    @property
    def verdict(self) -> str:
        """Pass | fail | inconclusive."""
        return "fail" if self._failures() else "inconclusive" if self.reasons else "pass"

    @property
    def samples(self) -> int:
        return sum(s.samples for s in self.sampled)

    @property
    def smallest_p(self) -> float:
        """Of all tests, after Holm's correction."""
        return min(holm(self.tests))

    @cached_property
    def smallest_bias(self) -> float:
        """Of the largest sample: `Sampled.smallest_bias`."""
        return self._largest().smallest_bias(self.false_alarm / len(self.tests))

    @property
    def tests(self) -> list[Test]:
        """All tests of all settings, in order."""
        return [test for s in self.sampled for test in s.tests]

    def _failures(self) -> list[str]:
        found = [
            f"T=0, concurrency {g.concurrency}: {d.prompt} differs from AR at token {d.position}, where its token is "
            f"{d.margin:.3g} nats below AR's"
            for g in self.greedy
            for d in g.bugs
        ]
        found += [
            f"{test.name}: p = {p:.2g} after correction, total variation {test.tv:.3f}"
            for test, p in zip(self.tests, holm(self.tests), strict=True)
            if p <= self.false_alarm
        ]
        if self.seeds and not self.seeds.differs:
            found.append("two seeds gave the same samples")
        if self.seeds and not self.seeds.repeats:
            found.append("one seed on two fresh servers gave different samples")
        return found

    def _doubts(self) -> list[str]:
        found = []
        if math.isinf(self.smallest_bias):
            found.append("no answer came often enough to be judged: more samples, or another prompt set")
        elif self.smallest_bias > LARGEST_BIAS:
            found.append(
                f"no bias below {LARGEST_BIAS:g} would be sure to be seen: take {self._needed():,} samples, or another "
                "prompt set"
            )
        most = self._largest()
        if self.proposal != "none" and min(most.tested, most.turned) < LEAST_EVENTS:
            found.append(
                f"{most.tested} accepted drafts and {most.turned} rejections among the sampled tokens: accepting and "
                f"rejecting need {LEAST_EVENTS} of each to be tested"
            )
        return found

    def _needed(self) -> int:
        """Samples for `LARGEST_BIAS`: what is seen falls with the root of their number."""
        return math.ceil(self._largest().samples * (self.smallest_bias / LARGEST_BIAS) ** 2 / 500) * 500

    def _largest(self) -> Sampled:
        return max(self.sampled, key=lambda s: s.samples)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; what is infinite becomes None."""
        derived = {name: getattr(self, name) for name in DERIVED}
        return _finite(asdict(self) | derived | {"power": POWER})  # type: ignore[no-any-return]


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

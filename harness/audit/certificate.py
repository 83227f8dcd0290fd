"""A certificate: what was asked of one arm, what came out, and how far the answer can be trusted.

Knows results, not servers. `verdict` is the one rule: *fail* on a difference that neither rounding nor chance explains,
*inconclusive* when the audit could not have seen a bias worth seeing, else *pass*. A certificate holds for the weights,
versions and proposal that it names and for nothing else (`harness.tables.certificates` reads them for the tables).
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.audit.chisquare import POWER, Test, holm
from harness.audit.greedy import Greedy
from sglang_specbench.errors import UserError

# Total variation that an audit must be able to see, or it is inconclusive: what the default number of samples sees on
# the mini target, computed from its law alone before any arm was asked.
LARGEST_BIAS = 0.10
LEAST_EVENTS = 100  # accepted drafts, and rejections, that the samples must hold


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """The samples of one setting and concurrency, and their tests."""

    setting: str
    concurrency: int
    samples: int
    blocks: int
    accepted: int
    tests: tuple[Test, ...]

    @property
    def tau(self) -> float | None:
        """1 + accepted drafts / blocks; None without blocks."""
        return 1 + self.accepted / self.blocks if self.blocks else None


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
    weights_date: str  # newest modification of the weights, UTC
    date: str  # of the audit, UTC
    versions: Mapping[str, str]
    attestation: Mapping[str, Any]
    false_alarm: float  # odds that an exact arm fails
    prompt: str  # id of the prompt whose answer was sampled
    after: int  # greedy tokens of that answer that stood before the sampled ones
    greedy: tuple[Greedy, ...]
    sampled: tuple[Sampled, ...]
    seeds: Seeds | None  # None: a server that cannot be restarted
    reasons: tuple[str, ...] = field(init=False)
    verdict: str = field(init=False)  # pass | fail | inconclusive
    samples: int = field(init=False)
    smallest_p: float = field(init=False)  # of all tests, after Holm's correction
    smallest_bias: float = field(init=False)  # total variation caught with probability POWER at every tested place

    def __post_init__(self) -> None:
        failures, doubts = self._failures(), self._doubts()
        set_ = object.__setattr__  # frozen: these five follow from the rest
        set_(self, "samples", sum(s.samples for s in self.sampled))
        set_(self, "smallest_p", min(holm(self.tests)))
        set_(self, "smallest_bias", self._smallest_bias())
        set_(self, "reasons", tuple(failures + doubts))
        set_(self, "verdict", "fail" if failures else "inconclusive" if doubts else "pass")

    @property
    def tests(self) -> list[Test]:
        """All tests of all settings, in order."""
        return [test for s in self.sampled for test in s.tests]

    def _failures(self) -> list[str]:
        found = [
            f"T=0, concurrency {g.concurrency}: {d.prompt} differs from AR at token {d.position}, where AR's two best "
            f"are {d.margin:.3g} nats apart"
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
        bias = self._smallest_bias()
        if bias > LARGEST_BIAS:
            found.append(f"the smallest bias that would be seen is {bias:.3f}: more samples, or a less certain prompt")
        accepted = sum(s.accepted for s in self.sampled)
        rejected = sum(s.blocks for s in self.sampled)  # at most one a block
        if self.proposal != "none" and min(accepted, rejected) < LEAST_EVENTS:
            found.append(f"{accepted} accepted drafts in {rejected} blocks: one path of the rule was hardly walked")
        return found

    def _smallest_bias(self) -> float:
        """Of the places that verify blocks fill, under the setting with most samples; the worst of them."""
        best = max(self.sampled, key=lambda s: s.samples)
        level = self.false_alarm / len(self.tests)
        return max(test.smallest_bias(level) for test in best.tests)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; what is infinite becomes None."""
        return _finite(asdict(self) | {"power": POWER})  # type: ignore[no-any-return]


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def path(folder: Path, target: str, arm: str, proposal: str) -> Path:
    """Where the certificate of an arm lies."""
    return folder / f"{target}-{arm}-{proposal}.json"


def load(place: Path) -> dict[str, Any]:
    """A certificate's JSON; `UserError` if the file is not one."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        if {"arm", "verdict", "versions"} <= found.keys():
            return dict(found)
    except (ValueError, AttributeError):
        pass
    raise UserError(f"{place}: not a certificate", "move it away and run specbench audit again")


def passed(place: Path, **wanted: object) -> bool:
    """Is there a passed certificate at ``place`` with these values (and at least so many ``samples``)."""
    if not place.is_file():
        return False
    found = load(place)
    enough = found.get("samples", 0) >= wanted.pop("samples", 0)
    return enough and found.get("verdict") == "pass" and all(found.get(k) == v for k, v in wanted.items())


def write(certificate: Certificate, folder: Path) -> Path:
    """Write the JSON and, beside it, the Markdown page; returns the path of the JSON."""
    from harness.audit.page import page

    folder.mkdir(parents=True, exist_ok=True)
    place = path(folder, certificate.target, certificate.arm, certificate.proposal)
    place.write_text(json.dumps(certificate.to_json(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    place.with_suffix(".md").write_text(page(certificate), encoding="utf-8")
    return place

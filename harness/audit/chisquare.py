"""Tests of sampled tokens against an exact distribution, with their power.

Knows counts and probabilities only. Pearson's chi-square on cells that expect enough counts: tokens of like
probability share one. `position_test` conditions on the tokens before (its chi-squares add up over prefixes), so each
position is judged by itself; `joint_test` judges whole sequences; `likeliest_test` looks in one direction, where a
broken rule errs, with all samples at once; `impossible_test` looks for forbidden tokens.

Power: a deviation whose total variation between a test's cells is t has Pearson distance w >= 2t (Cauchy-Schwarz), and
averages over prefixes keep the bound (Jensen). So however it is spread over the cells, a bias of w/2 is caught with the
stated power, where n w^2 is the noncentrality that the test catches with that power. What moves between tokens of one
cell is not seen by that test.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

from harness.audit.target_distribution import Prefix, TargetDistribution

# Of a cell. Cochran's 5 is for levels near 0.05: at the levels of a corrected family (3e-5) such cells reject five to
# nine times too often.
LEAST_EXPECTED = 20.0
LEAST_SHARE = 0.1  # of a prefix's samples: finer cells cost power against a bias of a few tokens
LEAST_SAMPLES = 200  # of a prefix that is judged by itself
LEAST_VARIANCE = 10.0  # of a count, below which its tail is not the normal's
POWER = 0.95


@dataclass(frozen=True, kw_only=True)
class Test:
    """One test: ``tv`` is the observed total variation over its cells (noise included)."""

    name: str
    samples: int
    df: int
    statistic: float
    p: float
    tv: float

    def smallest_bias(self, level: float) -> float:
        """Total variation between its cells that it catches with probability `POWER` at ``level``; inf if none."""
        if not self.df:
            return float("inf")
        limit = chi2.isf(level, self.df)
        noncentrality = brentq(lambda x: ncx2.sf(limit, self.df, x) - POWER, 1e-6, 100 * (limit + 10))
        return float((noncentrality / self.samples) ** 0.5 / 2)


@dataclass
class _Sum:
    """Chi-squares of independent groups, added up."""

    samples: int = 0
    df: int = 0
    statistic: float = 0.0
    variation: float = 0.0  # sum of samples * total variation

    def add(self, observed: Mapping[Any, int], p: Mapping[Any, float]) -> None:
        """One group: counts against probabilities; left out if it has fewer than two cells."""
        n = sum(observed.values())
        cells = _cells(observed, p, n)
        if len(cells) > 1:
            self.samples += n
            self.df += len(cells) - 1
            self.statistic += sum((o - e) ** 2 / e for o, e in cells)
            self.variation += sum(abs(o - e) for o, e in cells) / 2

    def test(self, name: str) -> Test:
        p = float(chi2.sf(self.statistic, self.df)) if self.df else 1.0
        tv = self.variation / self.samples if self.samples else 0.0
        return Test(name=name, samples=self.samples, df=self.df, statistic=self.statistic, p=p, tv=tv)


def _cells(observed: Mapping[Any, int], p: Mapping[Any, float], n: int) -> list[tuple[float, float]]:
    """(seen, expected) of each cell: keys from the likeliest on, packed until a cell expects enough; then the rest."""
    floor = max(LEAST_EXPECTED, LEAST_SHARE * n)
    cells: list[tuple[float, float]] = []
    seen = expected = 0.0
    for key, mass in sorted(p.items(), key=lambda item: -item[1]):
        seen, expected = seen + observed.get(key, 0), expected + n * mass
        if expected >= floor:
            cells.append((seen, expected))
            seen = expected = 0.0
    rest = (n - sum(o for o, _ in cells), n - sum(e for _, e in cells))
    if rest[1] >= LEAST_EXPECTED:
        return [*cells, rest]
    if cells:
        cells[-1] = (cells[-1][0] + rest[0], cells[-1][1] + rest[1])
    return cells


def position_test(name: str, samples: Sequence[Prefix], target: TargetDistribution, position: int) -> Test:
    """Token number ``position`` (from 0) given the tokens before it, over all prefixes that ``target`` holds.

    Prefixes with few samples make one group, whose distribution is the mean of theirs. Its counts vary less than a
    multinomial's, so the test errs on the safe side there; a bias that cancels over them would not be seen.
    """
    groups: dict[Prefix, Counter[int]] = {}
    for tokens in samples:
        if len(tokens) > position and tokens[:position] in target.conditionals:
            groups.setdefault(tokens[:position], Counter())[tokens[position]] += 1
    total, rare, mean = _Sum(), Counter[int](), Counter[int]()
    for prefix, observed in groups.items():
        if observed.total() >= LEAST_SAMPLES:
            total.add(observed, target.conditionals[prefix])
        else:
            rare += observed
            mean.update({t: observed.total() * p for t, p in target.conditionals[prefix].items()})
    if rare:
        total.add(rare, {token: mass / rare.total() for token, mass in mean.items()})
    return total.test(name)


def joint_test(name: str, samples: Sequence[Prefix], target: TargetDistribution, length: int) -> Test:
    """The first ``length`` tokens together."""
    total = _Sum()
    observed = Counter(tokens[:length] for tokens in samples)
    total.add(observed, target.sequences(length, LEAST_EXPECTED / max(len(samples), 1)))
    return total.test(name)


def likeliest_test(name: str, samples: Sequence[Prefix], target: TargetDistribution, first: int) -> Test:
    """How often the target's likeliest token came, from place ``first`` on, over all prefixes that ``target`` holds.

    One degree of freedom: what drafters guess is most often that token, so a rule that favours or punishes drafts moves
    its share, and here a shift of a few hundredths shows that is lost among the cells of the other tests. Given its
    prefix each place is a coin of known odds p, so the summed differences are a martingale of variance sum p (1 - p).
    Not judged (no degrees of freedom) where that is below `LEAST_VARIANCE`.
    """
    looked, surplus, variance = 0, 0.0, 0.0
    for tokens in samples:
        for place in range(first, len(tokens)):
            known = target.conditionals.get(tokens[:place])
            if known is not None:
                likeliest = next(iter(known))  # a distribution lists the likeliest first
                looked += 1
                surplus += (tokens[place] == likeliest) - known[likeliest]
                variance += known[likeliest] * (1 - known[likeliest])
    judged = variance >= LEAST_VARIANCE
    statistic = surplus**2 / variance if judged else 0.0
    p = float(chi2.sf(statistic, 1)) if judged else 1.0
    return Test(name=name, samples=looked, df=int(judged), statistic=statistic, p=p, tv=abs(surplus) / max(looked, 1))


def impossible_test(name: str, samples: Sequence[Prefix], target: TargetDistribution) -> Test:
    """Tokens that no rounding lets pass the cut: one is enough to reject."""
    looked = seen = 0
    for tokens in samples:
        for place, token in enumerate(tokens):
            allowed = target.allowed.get(tokens[:place])
            if allowed is not None:
                looked += 1
                seen += token not in allowed
    return Test(
        name=name, samples=looked, df=0, statistic=float(seen), p=0.0 if seen else 1.0, tv=seen / max(looked, 1)
    )


def holm(tests: Sequence[Test]) -> list[float]:
    """Adjusted p of each test, in order: rejecting those at or below a keeps the family's false alarms at a (Holm)."""
    order = sorted(range(len(tests)), key=lambda i: tests[i].p)
    adjusted = [0.0] * len(tests)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(tests) - rank) * tests[index].p))
        adjusted[index] = highest
    return adjusted

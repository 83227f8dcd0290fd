"""The published numbers checked against themselves: what follows from the rounded tables, beside what was printed.

A derived number comes with the interval that its inputs' rounding allows. It *agrees* when that interval meets the
printed one's; it is *exact* when it also rounds to the printed digits. Cells that agree and are not exact are those
where the paper's own rounding makes exact recomputation impossible; they are listed, never adjusted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from harness.paper import published
from harness.paper.published import bounds, quotient
from harness.stats import headcost
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, THROUGHPUT_SETS, Setting
from harness.stats.ties import count, places

HEAD_TOLERANCE = {"head_ms": 0.012, "head_share_pct": 0.2}  # what the rounded Tables 5 and 6 can tell


@dataclass(frozen=True, kw_only=True)
class Check:
    """One derived number beside the printed one."""

    setting: Setting
    quantity: str
    printed: Estimate
    derived: Estimate

    @property
    def agrees(self) -> bool:
        """The two roundings leave room for one true value."""
        (a, b), (c, d) = bounds(self.printed), bounds(self.derived)
        return a <= d and c <= b

    @property
    def exact(self) -> bool:
        """The derived value rounds to the printed digits."""
        low, high = bounds(self.printed)
        return low <= self.derived.value <= high


def checks() -> list[Check]:
    """Every derived number: speedups, Average rows, head costs and shares, the decode rule's change."""
    paper = published.results()
    return [*speedups(paper), *averages(paper), *head_costs(paper), *decode_rule(paper)]


def speedups(paper: Results) -> Iterator[Check]:
    """Table 1's speedups as throughput / AR throughput of Tables 5 and 6."""
    for setting, printed in _printed(paper, "speedup"):
        arm, ar = paper.get(setting, "throughput"), paper.get(setting.of("ar"), "throughput")
        if setting.benchmark != AVERAGE and isinstance(arm, Estimate) and isinstance(ar, Estimate):
            derived = quotient(arm, ar, 1, "throughput / AR throughput, both as printed")
            yield Check(setting=setting, quantity="speedup", printed=printed, derived=derived)


def averages(paper: Results) -> Iterator[Check]:
    """Average rows as plain means of the rows above them."""
    for quantity in ("tau", "throughput", "speedup"):
        for setting, printed in _printed(paper, quantity):
            if setting.benchmark == AVERAGE:
                parts = [_exists(paper, replace(setting, benchmark=b), quantity) for b in paper.benchmarks()]
                derived = Estimate(
                    float(np.mean([p.value for p in parts])),
                    float(np.mean([bounds(p)[0] for p in parts])),
                    float(np.mean([bounds(p)[1] for p in parts])),
                    len(parts),
                    f"mean of {len(parts)} printed rows",
                )
                yield Check(setting=setting, quantity=quantity, printed=printed, derived=derived)


def head_costs(paper: Results) -> Iterator[Check]:
    """Table 3 from block times tau / throughput of Tables 5 and 6; the interval is `HEAD_TOLERANCE`.

    LiLiCorr + conv is in Table 3 only: nothing to recompute it from.
    """
    derived = headcost.head_costs(published.block_draws(paper))
    for quantity, tolerance in HEAD_TOLERANCE.items():
        for setting, printed in _printed(paper, quantity):
            if setting in derived:
                value = float(derived[setting][quantity][0])
                estimate = Estimate(value, value - tolerance, value + tolerance, 8, "from printed tau / throughput")
                yield Check(setting=setting, quantity=quantity, printed=printed, derived=estimate)


def decode_rule(paper: Results) -> Iterator[Check]:
    """Table 16's change in per cent from its two columns."""
    for exact, printed in _printed(paper, "tau_change_pct"):
        path, walk = _exists(paper, exact, "tau"), _exists(paper, exact.of("lilicorr"), "tau_walk")
        ratio = quotient(path, walk, 100, "")
        low, high = (bound - 100 for bound in bounds(ratio))
        derived = Estimate(ratio.value - 100, low, high, 0, "100 (exact path / greedy walk - 1), both as printed")
        yield Check(setting=exact, quantity="tau_change_pct", printed=printed, derived=derived)


def scores(paper: Results) -> dict[str, tuple[int, int, int]]:
    """Wins, ties and trails of LiLiCorr under the 1 % band: Tables 5 and 6 by throughput, Table 2 by speedup, both."""
    main = [
        s for s, _ in _printed(paper, "throughput") if s.arm == "lilicorr" and s.benchmark != AVERAGE and not s.category
    ]
    tiers = [s for s, _ in _printed(paper, "speedup") if s.arm == "lilicorr" and s.benchmark in THROUGHPUT_SETS]
    counts = {
        "Tables 5 and 6": count(places(paper, main, "throughput")[0]),
        "Table 2": count(places(paper, tiers, "speedup")[0]),
    }
    wins, ties, trails = (sum(c) for c in zip(*counts.values(), strict=True))
    return counts | {"both": (wins, ties, trails)}


def _printed(paper: Results, quantity: str) -> Iterator[tuple[Setting, Estimate]]:
    for (setting, name), estimate in paper.values.items():
        if name == quantity and isinstance(estimate, Estimate):
            yield setting, estimate


def _exists(paper: Results, setting: Setting, quantity: str) -> Estimate:
    found = paper.get(setting, quantity)
    assert isinstance(found, Estimate), f"{setting}: {quantity}: {found}"
    return found

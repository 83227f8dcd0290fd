"""Head cost and block decomposition (the paper's Figure 2): backbone and target in grey, the head on top."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from harness.stats.estimate import Estimate
from harness.stats.headcost import CONTROL, place
from harness.stats.results import Results
from plots import style


def draw(results: Results) -> Figure | None:
    """One bar per arm and target: DFlash's median block time, and on it the head in milliseconds with its share."""
    targets = [t for t in results.targets() if isinstance(results.get(place(t, CONTROL), "median_block_ms"), Estimate)]
    if not targets:
        return None
    figure: Figure
    figure, axes = plt.subplots(1, len(targets), figsize=(style.WIDTH, 2.4), squeeze=False, sharey=False)
    for axis, target in zip(axes[0], targets, strict=True):
        base = results.get(place(target, CONTROL), "median_block_ms")
        assert isinstance(base, Estimate)
        arms = [a for a in results.arms(target) if isinstance(results.get(place(target, a), "head_ms"), Estimate)]
        arms = [CONTROL, *(a for a in arms if a != CONTROL)]
        for i, arm in enumerate(arms):
            axis.barh(i, base.value, color="#cccccc")
            if arm != CONTROL:
                _head(axis, i, arm, base.value, results, target)
        axis.set_yticks(range(len(arms)), [style.title(a) for a in arms])
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        axis.set_xlabel("median block time (ms)")
        axis.set_title(f"{target}: backbone + target {base.value:.2f} ms, head on top")
    figure.tight_layout()
    return figure


def _head(axis: plt.Axes, row: int, arm: str, base: float, results: Results, target: str) -> None:
    head, share = (results.get(place(target, arm), q) for q in ("head_ms", "head_share_pct"))
    assert isinstance(head, Estimate)
    doubt = (
        [[head.value - head.low], [head.high - head.value]] if head.low is not None and head.high is not None else None
    )
    axis.barh(row, head.value, left=base, color=style.colour(arm), xerr=doubt, error_kw={"linewidth": 0.8})
    text = f" {head.value:.3f} ms" + (f" ({share.value:.1f} %)" if isinstance(share, Estimate) else "")
    axis.annotate(text, (base + max(head.value, 0), row), va="center", fontsize=7)
    axis.margins(x=0.25)

"""The analytic model: speedup against batch, for a dense target and a mixture of experts, regimes shaded.

Nothing here is measured. A block of 16 positions, independent acceptance, a common block drafter; a line ends where
memory does. Shades are the regime of the verification at the shorter context: weights (white), arithmetic (grey).
"""

from dataclasses import replace
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.speedup_model import presets
from harness.speedup_model.batch_speedup import BLOCK_DRAFTER, block, drafter, gain, sequences_that_fit
from harness.speedup_model.speedup import iid_survival
from plots import style

ALPHA, DRAFTED = 0.8, 15
CONTEXTS = (512, 8192)
COLOURS = ("#0072B2", "#D55E00")
SHADES = {"weights": "#ffffff", "kv": "#e8f1f8", "arithmetic": "#eeeeee"}
PANELS = (("qwen3-8b", "h100", 1), ("qwen3-30b-a3b", "h100", 2))
BATCHES = [int(b) for b in np.unique(np.geomspace(1, 1024, 80).round())]


def draw() -> Figure:
    """One panel a target."""
    figure: Figure
    figure, axes = plt.subplots(1, len(PANELS), figsize=(style.WIDTH, style.WIDTH / 2.6), sharey=True)
    for axis, (target, hardware, gpus) in zip(axes, PANELS, strict=True):
        _panel(axis, target, hardware, gpus)
    axes[0].set_ylabel("speedup over autoregressive decoding")
    figure.tight_layout()
    return figure


def _panel(axis: Axes, target: str, hardware: str, gpus: int) -> None:
    shape, device = presets.shape(target), replace(presets.hardware(hardware), gpus=gpus)
    drafting, survival = drafter(BLOCK_DRAFTER, shape), iid_survival(ALPHA, DRAFTED)
    for context, colour in zip(CONTEXTS, COLOURS, strict=True):
        fits = sequences_that_fit(shape, drafting, device, context + DRAFTED + 1)
        found = [block(shape, drafting, device, b, DRAFTED, context) for b in BATCHES if b <= fits]
        gains = [gain(survival, b) for b in found]
        axis.plot([b.batch for b in found], gains, color=colour, linewidth=1.2, label=f"{context:,} cached")
        if fits < BATCHES[-1]:
            axis.plot(found[-1].batch, gains[-1], color=colour, marker="|", markersize=8)
    regimes = [(b, block(shape, drafting, device, b, DRAFTED, CONTEXTS[0]).verify.regime) for b in BATCHES]
    for (start, regime), (end, _) in pairwise(regimes):
        axis.axvspan(start, end, color=SHADES[regime], linewidth=0, zorder=-1)
    axis.axhline(1, color="#888888", linewidth=0.6)
    axis.set_xscale("log", base=2)
    axis.set_xlim(1, BATCHES[-1])
    axis.set_ylim(bottom=0)
    axis.set_xlabel(f"sequences a pass: {target}, {gpus} x {hardware}")
    axis.legend(fontsize=6)

"""The analytic model: what a draft length is worth, and when verifying more positions stops being free.

Nothing here is measured; `prediction` shows how far a run is from it. Left, the i.i.d. model of arXiv 2211.17192 with a
draft pass of 0.05 target passes: solid lines pay it for every drafted token, dashed ones once a block; a dot is the
best length. Right, the roofline of Llama 3.1 8B on an H100: time of a pass with one and with four positions a sequence.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.speedup_model import presets
from harness.speedup_model.roofline import free_batch, step
from harness.speedup_model.speedup import autoregressive_draft, best_length, iid_survival, parallel_draft, speedup
from plots import style

LONGEST = 15  # drafted tokens: a window of 16
COST = 0.05  # a draft pass, in target passes
ALPHAS = (0.6, 0.7, 0.8, 0.9)
SHADES = ("#56B4E9", "#009E73", "#E69F00", "#D55E00")
POSITIONS = 4  # a verified block
CONTEXTS = (512, 8192)  # below and above the critical context of such a pass, 1,755 tokens
BATCHES = np.unique(np.geomspace(1, 512, 60).round().astype(int))


def draw() -> Figure:
    """Both panels."""
    figure: Figure
    figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, style.WIDTH / 2.6))
    _lengths(left)
    _passes(right)
    figure.tight_layout()
    return figure


def _lengths(axis: Axes) -> None:
    for alpha, shade in zip(ALPHAS, SHADES, strict=True):
        survival = iid_survival(alpha, LONGEST)
        for draft, dashes in ((autoregressive_draft(COST), ()), (parallel_draft(COST), (4, 1))):
            gains = [speedup(survival[:drafted], draft) for drafted in range(LONGEST + 1)]
            label = f"acceptance {alpha:g}" if not dashes else None
            axis.plot(range(LONGEST + 1), gains, color=shade, dashes=dashes, linewidth=1.2, label=label)
            axis.plot(*best_length(survival, draft), color=shade, marker="o", markersize=3)
    axis.set_xticks(range(0, LONGEST + 1, 5))
    axis.set_xlabel("drafted tokens a block")
    axis.set_ylabel("speedup over autoregressive decoding")
    axis.legend(fontsize=6)


def _passes(axis: Axes) -> None:
    shape, device = presets.shape("llama-3.1-8b"), presets.hardware("h100")
    for context, shade in zip(CONTEXTS, ("#0072B2", "#CC79A7"), strict=True):
        for positions, dashes in ((1, (4, 1)), (POSITIONS, ())):
            times = [1000 * step(shape, device, int(batch), positions, context).seconds for batch in BATCHES]
            label = f"{positions} position{'s' if positions > 1 else ''}, {context:,} cached"
            axis.plot(BATCHES, times, color=shade, dashes=dashes, linewidth=1.2, label=label)
        end = free_batch(shape, device, POSITIONS, context)
        if end is not None:
            axis.axvline(end, color=shade, linewidth=0.6)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel("sequences a pass (line: verification stops being free)")
    axis.set_ylabel("time of a pass (ms)")
    axis.legend(fontsize=6)

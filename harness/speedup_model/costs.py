"""What a block costs in autoregressive passes: given in passes of the target, from rooflines, or from measured widths.

Knows how costs are combined; not acceptance. A batch of B rows that verifies ``slots`` drafts in all makes one pass
over B + slots positions. A parallel drafter drafts its whole block whatever is verified of it; a token by token one
stops at the width.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from harness.speedup_model.batch_speedup import DrafterShape, block, sequences_that_fit
from harness.speedup_model.roofline import Hardware, ragged_step
from harness.speedup_model.shape import Shape


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Times in autoregressive passes of the same batch; ``source`` says where they come from."""

    block: Callable[[int, int], float]  # batch, width: every row verifies ``width`` positions, its anchor included
    ragged: Callable[[int, int], float]  # batch, slots: the rows verify ``slots`` drafts in all
    source: str
    fits: float = math.inf  # sequences that memory holds, where that is known


def in_passes(drafted: int, draft: Callable[[int], float], verify: Callable[[int], float], parallel: bool) -> Costs:
    """Costs of a block of ``drafted`` as stated by the user; the same at every batch."""

    def ragged(batch: int, slots: int) -> float:
        mean = slots / batch
        low = int(mean)
        between = verify(low) + (mean - low) * (verify(low + 1) - verify(low))
        return draft(drafted) + between

    return Costs(
        block=lambda batch, width: draft(drafted if parallel else width - 1) + verify(width - 1),
        ragged=ragged,
        source="costs as stated, in passes of the target",
    )


def from_rooflines(
    target: Shape, drafting: DrafterShape, hardware: Hardware, drafted: int, context: float, t0_s: float
) -> Costs:
    """Costs of a block of ``drafted`` from sizes and peak rates."""

    def made(batch: int, slots: int) -> float:
        whole = block(target, drafting, hardware, batch, drafted, context, t0_s)
        return (whole.draft_s + ragged_step(target, hardware, batch, batch + slots, context, t0_s).seconds) / (
            whole.ar.seconds
        )

    def narrow(batch: int, width: int) -> float:
        if drafting.parallel:
            return made(batch, batch * (width - 1))
        return block(target, drafting, hardware, batch, width - 1, context, t0_s).cost

    return Costs(
        block=narrow,
        ragged=made,
        source=f"rooflines, {hardware.source.split(' datasheet')[0]}",
        fits=sequences_that_fit(target, drafting, hardware, context + drafted + 1),
    )


def from_widths(passes: Mapping[int, float]) -> Costs:
    """The straight line in the width through measured blocks: width -> time in autoregressive passes.

    Of one batch, that of the measurement. ValueError for fewer than two widths, and for a line that reaches no time.
    """
    if len(passes) < 2:
        raise ValueError("a line needs blocks of two widths")
    widths, times = np.array(list(passes), float), np.array(list(passes.values()))
    slope, start = np.polyfit(widths, times, 1)
    if start + slope <= 0 or not np.isfinite(slope):
        raise ValueError(f"the line through them says that a block of one position takes {start + slope:.3g} AR passes")
    off = np.abs((start + slope * widths) / times - 1).max()
    bent = f", off by at most {100 * off:.1f} %" if len(passes) > 2 else ""
    return Costs(
        block=lambda batch, width: float(start + slope * width),
        ragged=lambda batch, slots: float(start + slope * (1 + slots / batch)),
        source=f"a line through measured widths {', '.join(map(str, sorted(passes)))}{bent}",
    )

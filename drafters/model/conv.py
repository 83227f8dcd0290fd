"""The grouped dynamic convolution that DFlash2 puts around every attention and MLP sub-layer of a draft block.

A short depthwise filter over the rows of one block, looking backwards only; its coefficients are a learned base plus a
part computed from the row itself and shared by the channels of a group. Rows before the block's first count as zero,
so no block sees its neighbour. Context rows are never convolved.

Source: SGLang 0.5.23 ``models/dflash.py:DFlashGroupedConv``. Shapes: ... blocks, R rows, H channels, T taps, G groups.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GroupedConv(nn.Module):
    """``prepare`` acts on a sub-layer's normalised input, ``finish`` on its output; starts as the identity."""

    def __init__(self, width: int, taps: int, group: int) -> None:
        super().__init__()
        self.taps = taps
        base = torch.zeros(2, taps, width)
        base[:, 0] = 1
        self.base_kernel = nn.Parameter(base)
        self.kernel_projection = nn.Linear(width, 2 * taps * (width // group), bias=False)
        nn.init.zeros_(self.kernel_projection.weight)

    def prepare(self, x_RH: Tensor) -> tuple[Tensor, Tensor]:
        """The convolved input, and the coefficients [..., R, T, G] that ``finish`` wants (both from ``x_RH``)."""
        delta_R2TG = self.kernel_projection(x_RH).unflatten(-1, (2, self.taps, -1))
        before_RTG, after_RTG = delta_R2TG.unbind(-3)
        return convolve(x_RH, self.base_kernel[0], before_RTG), after_RTG

    def finish(self, x_RH: Tensor, delta_RTG: Tensor) -> Tensor:
        return convolve(x_RH, self.base_kernel[1], delta_RTG)


def convolve(x_RH: Tensor, base_TH: Tensor, delta_RTG: Tensor) -> Tensor:
    """Sum over taps t of (base[t] + delta[row, t, channel's group]) * x[row - t], zero before the block's first row."""
    group = x_RH.shape[-1] // delta_RTG.shape[-1]
    kernel_RTH = base_TH + delta_RTG.repeat_interleave(group, dim=-1)
    out_RH = kernel_RTH[..., 0, :] * x_RH
    for tap in range(1, base_TH.shape[0]):
        earlier_RH = F.pad(x_RH[..., :-tap, :], (0, 0, tap, 0))
        out_RH = out_RH + kernel_RTH[..., tap, :] * earlier_RH
    return out_RH

"""RMSNorm in Qwen3's order of rounding: normalised in fp32, rounded to the input's type, then scaled."""

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Over the last axis, of ``width``; its one parameter is ``weight``."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        normal = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (normal.to(x.dtype) * self.weight).to(x.dtype)  # under autocast the weight is fp32

"""RMSNorm in Qwen3's order of rounding: normalised in fp32, rounded to the input's type, then scaled."""

from typing import Any

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Over the last axis, of ``width``; its one parameter is ``weight``."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        normal: Tensor = _Normalise.apply(x, self.eps)
        return (normal * self.weight).to(x.dtype)  # under autocast the weight is fp32


class _Normalise(torch.autograd.Function):
    """x / rms(x) with its gradient written out: a drafter's many small norms are bound by passes over memory."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> Tensor:
        wide = _wide(x)
        length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        scale = torch.rsqrt(length.square() / x.shape[-1] + eps)
        normal = (wide * scale).to(x.dtype)
        ctx.save_for_backward(normal, scale)
        return normal

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """(g - n mean(g n)) / rms, with n the normalised x."""
        normal, scale = ctx.saved_tensors
        gradient, normal = _wide(gradients[0]), _wide(normal)
        along = torch.linalg.vecdot(gradient, normal)[..., None] / -normal.shape[-1]
        return (torch.addcmul(gradient, normal, along) * scale).to(gradients[0].dtype), None


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x

"""Losses over a large vocabulary, a few rows at a time.

Knows memory, not formulas: logits of all slots of a paper-scale step would be several gigabytes, so a function of
rows is applied to chunks of them and, where there is more than one, its logits are computed again in the backward
pass instead of being kept. Also the slot weights that several arms share.

Shapes: R rows (M blocks times D slots, flattened), H width, V vocabulary.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

_LOGITS = 2**28  # of one chunk: 1 GiB in fp32
_ROWS = 512  # of one chunk of `frozen_head_loss`


def over_rows(function: Callable[..., tuple[Tensor, ...]], vocabulary: int, *blocks_MD: Tensor) -> tuple[Tensor, ...]:
    """``function`` of the tensors [M, D, ...] with blocks and slots flattened; its results are [M, D, ...] again."""
    M, D = blocks_MD[0].shape[:2]
    rows = [tensor.flatten(0, 1) for tensor in blocks_MD]
    at_once = max(1, _LOGITS // vocabulary)
    if at_once >= M * D:
        results = function(*rows)
    else:
        chunks = zip(*(tensor.split(at_once) for tensor in rows), strict=True)
        parts = [checkpoint(function, *chunk, use_reentrant=False) for chunk in chunks]
        results = tuple(torch.cat(part) for part in zip(*parts, strict=True))
    return tuple(result.unflatten(0, (M, D)) for result in results)


def negative_log_likelihood(logits_RV: Tensor, gold_R: Tensor) -> Tensor:
    """-log softmax(logits)[gold] of each row, in fp32."""
    return torch.nn.functional.cross_entropy(logits_RV.float(), gold_R, reduction="none")


def frozen_head_loss(h_RH: Tensor, head_VH: Tensor, gold_R: Tensor) -> tuple[Tensor, Tensor]:
    """(-log softmax(h @ head.T)[gold], whether gold is the argmax) of each row, for a head without a gradient.

    The gradient of a row's loss with respect to its h is computed with the loss and kept instead of the logits, so they
    are computed once and never leave the cache: no second pass as in `over_rows`.
    """
    loss_R, right_R = _FrozenHeadLoss.apply(h_RH, head_VH, gold_R)
    return loss_R, right_R


class _FrozenHeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h_RH: Tensor, head_VH: Tensor, gold_R: Tensor) -> tuple[Tensor, Tensor]:
        losses, rights, gradients = [], [], []
        for h_rH, gold_r in zip(h_RH.split(_ROWS), gold_R.split(_ROWS), strict=True):
            logits_rV = h_rH @ head_VH.T
            rights.append(logits_rV.argmax(-1) == gold_r)
            wide = torch.float32 if logits_rV.dtype in (torch.float16, torch.bfloat16) else logits_rV.dtype
            logp_rV = logits_rV.log_softmax(-1, dtype=wide)
            losses.append(-logp_rV.gather(1, gold_r[:, None])[:, 0])
            error_rV = logp_rV.exp_()  # softmax - one-hot
            error_rV[torch.arange(len(gold_r), device=gold_r.device), gold_r] -= 1
            gradients.append((error_rV.to(head_VH.dtype) @ head_VH).to(h_RH.dtype))
        ctx.save_for_backward(torch.cat(gradients))
        right_R = torch.cat(rights)
        ctx.mark_non_differentiable(right_R)
        return torch.cat(losses), right_R

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (unit_RH,) = ctx.saved_tensors
        return (unit_RH * gradients[0][:, None]).to(unit_RH.dtype), None, None


def decay(slots: int, beta: float, device: torch.device) -> Tensor:
    """exp(-s / beta) for 0-based slots s: [D]. Earlier slots decide whether later ones count (LiLiCorr, Eq. 5)."""
    return torch.exp(-torch.arange(slots, device=device) / beta)

"""Losses over a large vocabulary, a few rows at a time.

Knows memory, not formulas: logits of all slots of a paper-scale step would be several gigabytes, so a function of
rows is applied to chunks of them and, where there is more than one, its logits are computed again in the backward
pass instead of being kept. Also the slot weights that several arms share.

Shapes: R rows (M blocks times D slots, flattened), H width, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

_LOGITS = 2**28  # of one chunk: 1 GiB in fp32


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


def decay(slots: int, beta: float, device: torch.device) -> Tensor:
    """exp(-s / beta) for 0-based slots s: [D]. Earlier slots decide whether later ones count (LiLiCorr, Eq. 5)."""
    return torch.exp(-torch.arange(slots, device=device) / beta)

"""Block attention: a block's rows see their own sequence strictly before the anchor, and their own block both ways.

Two exact forms. `two_part` lays the context and a block's own rows side by side for each block: no row ever meets
another block, so nothing of size (all rows)^2 exists; it serves CPUs and decoding. `flex` is the same for packed blocks
on CUDA, where the context must not be copied for every block. `dense_mask` states the rule once more as a table, for
tests.

Shapes: B sequences, S context positions, N blocks, R rows, Q query heads, K key heads, E head width.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from drafters.model.blocks import Blocks


def attend(q_BNRQE: Tensor, context: tuple[Tensor, Tensor], own: tuple[Tensor, Tensor], blocks: Blocks) -> Tensor:
    """Attention output [B, N, R, Q, E]; ``context`` is (keys, values) [B, S, K, E], ``own`` [B, N, R, K, E]."""
    packed = q_BNRQE.shape[1] > 1
    form = flex if q_BNRQE.is_cuda and packed else two_part
    return form(q_BNRQE, context, own, blocks)


def two_part(q_BNRQE: Tensor, context: tuple[Tensor, Tensor], own: tuple[Tensor, Tensor], blocks: Blocks) -> Tensor:
    B, N, R, Q, E = q_BNRQE.shape
    S, K = context[0].shape[1:3]
    # Z = B * N blocks; X = R * (Q / K): the rows of all query heads that share a key head; L = S + R
    q_ZKXE = q_BNRQE.view(B, N, R, K, Q // K, E).permute(0, 1, 3, 2, 4, 5).reshape(B * N, K, -1, E)
    keys_ZKLE, values_ZKLE = (_side_by_side(far, near) for far, near in zip(context, own, strict=True))
    place_L = torch.arange(S + R, device=q_BNRQE.device)
    sees_BNL = (place_L < blocks.anchor_BN[..., None]) | (place_L >= S)
    # a float mask, since SDPA would write a boolean one out for every row
    bar_BNL = torch.zeros_like(sees_BNL, dtype=q_ZKXE.dtype).masked_fill(~sees_BNL, float("-inf"))
    bar_ZKXL = bar_BNL.view(B * N, 1, 1, -1).expand(-1, 1, q_ZKXE.shape[2], -1)
    out_ZKXE = F.scaled_dot_product_attention(q_ZKXE, keys_ZKLE, values_ZKLE, attn_mask=bar_ZKXL)
    return out_ZKXE.view(B, N, K, R, Q // K, E).permute(0, 1, 3, 2, 4, 5).reshape(B, N, R, Q, E)


def _side_by_side(far_BSKE: Tensor, near_BNRKE: Tensor) -> Tensor:
    """The context's and each block's own, for every block: [B * N, K, S + R, E]."""
    far_BNSKE = far_BSKE[:, None].expand(-1, near_BNRKE.shape[1], -1, -1, -1)
    return torch.cat([far_BNSKE, near_BNRKE], 2).flatten(0, 1).transpose(1, 2)


def flex(q_BNRQE: Tensor, context: tuple[Tensor, Tensor], own: tuple[Tensor, Tensor], blocks: Blocks) -> Tensor:
    keys, values = (torch.cat([far, near.flatten(1, 2)], 1) for far, near in zip(context, own, strict=True))
    out_BQLE = _compiled_flex()(
        q_BNRQE.flatten(1, 2).transpose(1, 2),
        keys.transpose(1, 2),
        values.transpose(1, 2),
        block_mask=block_mask(blocks),
        enable_gqa=True,
    )
    return out_BQLE.transpose(1, 2).unflatten(1, q_BNRQE.shape[1:3])


@functools.cache
def _compiled_flex() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True)  # every batch has another length


def block_mask(blocks: Blocks) -> Any:
    """flex_attention's mask over [context; all blocks' rows]; all layers of a forward share it."""
    if blocks.mask is None:
        from torch.nn.attention.flex_attention import create_block_mask

        rows = blocks.anchor_BN.shape[1] * blocks.rows
        blocks.mask = create_block_mask(
            _rule(blocks), len(blocks.anchor_BN), None, rows, blocks.context + rows, device=blocks.anchor_BN.device
        )
    return blocks.mask


def dense_mask(blocks: Blocks) -> Tensor:
    """The same rule as a table: [B, N * R, S + N * R], true where a query row sees a key."""
    B, N = blocks.anchor_BN.shape
    b, q, kv = (
        torch.arange(n, device=blocks.anchor_BN.device) for n in (B, N * blocks.rows, blocks.context + N * blocks.rows)
    )
    return _rule(blocks)(b[:, None, None], None, q[None, :, None], kv[None, None])


def _rule(blocks: Blocks) -> Callable[..., Tensor]:
    anchor_BN, rows, context = blocks.anchor_BN, blocks.rows, blocks.context

    def sees(b: Tensor, _head: Any, q: Tensor, kv: Tensor) -> Tensor:
        block = q // rows
        return torch.where(kv < context, kv < anchor_BN[b, block], (kv - context) // rows == block)

    return sees

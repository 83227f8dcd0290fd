"""Block attention: a block's rows see their own sequence strictly before the anchor, and their own block both ways.

Two exact forms. `two_part` scores context and block apart and takes one softmax over both: no row ever meets another
block, so nothing of size (all rows)^2 exists; it serves CPUs and decoding. `flex` is the same for CUDA, where the
scores must not be written out. `dense_mask` states the rule once more as a table, for tests.

Shapes: B sequences, S context positions, N blocks, R rows, Q query heads, K key heads, E head width.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from drafters.blocks import Blocks


def attend(q_BNRQE: Tensor, context: tuple[Tensor, Tensor], own: tuple[Tensor, Tensor], blocks: Blocks) -> Tensor:
    """Attention output [B, N, R, Q, E]; ``context`` is (keys, values) [B, S, K, E], ``own`` [B, N, R, K, E]."""
    form = flex if q_BNRQE.is_cuda and torch.is_grad_enabled() else two_part
    return form(q_BNRQE, context, own, blocks)


def two_part(q_BNRQE: Tensor, context: tuple[Tensor, Tensor], own: tuple[Tensor, Tensor], blocks: Blocks) -> Tensor:
    B, N, R, Q, E = q_BNRQE.shape
    (ck_BSKE, cv_BSKE), (k_BNRKE, v_BNRKE) = context, own
    S, K = ck_BSKE.shape[1:3]
    # X = R * (Q / K): the rows of all query heads that share a key head
    q_BKNXE = q_BNRQE.view(B, N, R, K, Q // K, E).permute(0, 3, 1, 2, 4, 5).reshape(B, K, N, -1, E) * E**-0.5
    far_BKNXS = (q_BKNXE.flatten(2, 3) @ ck_BSKE.permute(0, 2, 3, 1)).view(B, K, N, -1, S)
    hidden_BNS = torch.arange(S, device=q_BNRQE.device) >= blocks.anchor_BN[..., None]
    far_BKNXS = far_BKNXS.masked_fill(hidden_BNS[:, None, :, None], float("-inf"))
    near_BKNXR = q_BKNXE @ k_BNRKE.permute(0, 3, 1, 4, 2)
    weights = torch.cat([far_BKNXS, near_BKNXR], -1).softmax(-1)
    far, near = weights.split([S, R], -1)
    out_BKNXE = (far.flatten(2, 3) @ cv_BSKE.transpose(1, 2)).view(B, K, N, -1, E) + near @ v_BNRKE.permute(
        0, 3, 1, 2, 4
    )
    return out_BKNXE.view(B, K, N, R, Q // K, E).permute(0, 2, 3, 1, 4, 5).reshape(B, N, R, Q, E)


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

    return torch.compile(flex_attention, dynamic=False)


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

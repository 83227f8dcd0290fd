"""One training batch: the blocks drafted from it, their labels, and the frozen target's view of it.

Knows tokens, masks, anchors and frozen tensors; no drafter. A block starts at its anchor a (a token that is given), and
slot s holds token a + 1 + s; the target predicts it from position a + s. Sequences are padded on the right, blocks
with ``keep`` false are padding and never reach a loss.

Shapes: B sequences, S positions, N blocks of a sequence, M kept blocks of the batch, R rows of a block, D slots,
F concatenated target features, H width, V vocabulary.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor


@dataclass(eq=False)
class Blocks:
    """Where the rows of all blocks stand: row r of a block at position anchor + r, in a context of S positions."""

    anchor_BN: Tensor
    rows: int
    context: int
    mask: Any = None  # flex_attention's, made once for all layers (`attention.block_mask`)

    @cached_property
    def position_BNR(self) -> Tensor:
        return self.anchor_BN[..., None] + torch.arange(self.rows, device=self.anchor_BN.device)


@dataclass(frozen=True)
class Labels:
    """The true tokens of the kept blocks' slots; ``previous_MD`` are the tokens just before them."""

    gold_MD: Tensor
    previous_MD: Tensor
    supervised_MD: Tensor  # bool: in bounds and under the loss mask
    sequence_M: Tensor
    anchor_M: Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingBatch:
    """What every arm's loss is computed from. Frozen target tensors carry no gradient.

    ``features_BSF``: hidden states after the target layers of ``target_layer_ids``, concatenated in that order;
    ``final_BSH``: the target's last hidden state after its final norm (teacher logits = ``final @ head.T``);
    ``progress``: share of the optimiser steps done, in [0, 1].
    """

    tokens_BS: Tensor
    loss_BS: Tensor  # bool, false on padding
    anchor_BN: Tensor
    keep_BN: Tensor  # bool; a padded block has anchor 0
    features_BSF: Tensor
    final_BSH: Tensor
    embedding_VH: Tensor
    head_VH: Tensor
    progress: float = 0.0

    def inputs(self, mask_token_id: int, rows: int) -> Tensor:
        """Embedded rows of every block, the anchor's token and then mask tokens: [B, N, R, H]."""
        ids_BN = self.tokens_BS.gather(1, self.anchor_BN)
        ids_BNR = torch.full((*ids_BN.shape, rows), mask_token_id, device=ids_BN.device)
        ids_BNR[..., 0] = ids_BN
        return self.embedding_VH[ids_BNR]

    def labels(self, slots: int) -> Labels:
        """Labels of the first ``slots`` slots of the kept blocks, in the order of ``x_BN[keep_BN]``."""
        sequence_M, block_M = self.keep_BN.nonzero(as_tuple=True)
        anchor_M = self.anchor_BN[sequence_M, block_M]
        at_MD = anchor_M[:, None] + 1 + torch.arange(slots, device=anchor_M.device)
        last = self.tokens_BS.shape[1] - 1
        inside_MD, at_MD, row_M1 = at_MD <= last, at_MD.clamp_max(last), sequence_M[:, None]
        gold_MD = self.tokens_BS[row_M1, at_MD]
        anchor_token_M1 = self.tokens_BS[sequence_M, anchor_M][:, None]
        return Labels(
            gold_MD,
            torch.cat([anchor_token_M1, gold_MD[:, :-1]], 1),
            inside_MD & self.loss_BS[row_M1, at_MD],
            sequence_M,
            anchor_M,
        )

    def teacher(self, labels: Labels) -> Tensor:
        """The target's final hidden state before each slot's token: [M, D, H]."""
        slots = torch.arange(labels.gold_MD.shape[1], device=labels.anchor_M.device)
        at_MD = (labels.anchor_M[:, None] + slots).clamp_max(self.tokens_BS.shape[1] - 1)
        return self.final_BSH[labels.sequence_M[:, None], at_MD]

"""Domino's loss: cross-entropy of the corrected logits, mixed with that of the base logits early in training.

L = (1 - lambda) CE(final) + lambda CE(base), both with weights exp(-s / beta); lambda falls linearly from 1 to 0 over a
share of the steps, so training starts as DFlash. The GRU reads the true tokens up to the one before the slot (teacher
forcing); the first slot has no correction.

Source: SpecForge 0.2.0 (its numbers are reproduced in the tests of the formula). Shapes: E bottleneck; see `blocks`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from drafters.model.blocks import TrainingBatch
from drafters.model.crossentropy import decay, negative_log_likelihood, over_rows
from drafters.model.drafter import Drafter
from drafters.model.losses import Loss, prefix_counts


@dataclass(frozen=True, kw_only=True)
class Weights:
    beta: float = 7.0  # slots over which the weight of a slot falls to 1/e
    mixing: float = 1.0  # share of the steps over which lambda falls to 0


def loss(drafter: Drafter, batch: TrainingBatch, weights: Weights) -> Loss:
    h_MDH, _ = drafter(batch)
    labels = batch.labels(h_MDH.shape[1])
    head = drafter.head
    narrow_MDE = head.bottleneck(h_MDH, head.states(batch.embedding_VH[labels.previous_MD]))
    narrow_MDE = torch.cat([torch.zeros_like(narrow_MDE[:, :1]), narrow_MDE[:, 1:]], 1)  # first slot: no correction

    def rows(h_RH: Tensor, narrow_RE: Tensor, gold_R: Tensor) -> tuple[Tensor, ...]:
        base_RV = h_RH @ batch.head_VH.T
        final_RV = base_RV + head.embed_proj[2](narrow_RE)
        losses = negative_log_likelihood(base_RV, gold_R), negative_log_likelihood(final_RV, gold_R)
        return *losses, base_RV.argmax(-1) == gold_R, final_RV.argmax(-1) == gold_R

    base_MD, final_MD, top1_MD, selected_MD = over_rows(rows, len(batch.head_VH), h_MDH, narrow_MDE, labels.gold_MD)
    w_MD = labels.supervised_MD * decay(h_MDH.shape[1], weights.beta, h_MDH.device)
    sums = {"final": (w_MD * final_MD).sum(), "base": (w_MD * base_MD).sum()}
    base_share = base_weight(batch.progress, weights.mixing)
    counts = prefix_counts(labels, drafter.config.drafted, top1=top1_MD, selected=selected_MD)
    return Loss({"final": 1 - base_share, "base": base_share}, sums, dict.fromkeys(sums, w_MD.sum()), counts)


def base_weight(progress: float, mixing: float) -> float:
    """Lambda at ``progress`` through the training, in [0, 1]."""
    return max(0.0, 1 - progress / mixing)

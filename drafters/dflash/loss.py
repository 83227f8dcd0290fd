"""DFlash's loss: cross-entropy of every slot with the true token, earlier slots weighing more.

L = - sum_s w_s log p_s(g_s) / sum_s w_s, w_s = exp(-s / beta) over supervised slots (LiLiCorr's paper, Eq. 5).
D-PACE (arXiv 2605.18810) replaces w_s by the drafter's own chance that slot s matters: with
q_j = (1 - alpha) p_j(g_j) + alpha and C_j = prod_{i <= j} q_i, w_s = sum_{m >= s} C_m, a constant for the gradient.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from drafters.model.blocks import TrainingBatch
from drafters.model.crossentropy import decay, frozen_head_loss
from drafters.model.drafter import Drafter
from drafters.model.losses import Loss, prefix_counts


@dataclass(frozen=True, kw_only=True)
class Weights:
    """``dpace_alpha`` 0 means exponential decay; otherwise D-PACE with that alpha (its paper: 0.5)."""

    beta: float = 7.0  # slots over which the weight of a slot falls to 1/e
    dpace_alpha: float = 0.0  # smoothing of D-PACE's weights; 0: exponential decay


def loss(drafter: Drafter, batch: TrainingBatch, weights: Weights) -> Loss:
    h_MDH, _ = drafter(batch)
    labels = batch.labels(h_MDH.shape[1])

    nll_R, right_R = frozen_head_loss(h_MDH.flatten(0, 1), batch.head_VH, labels.gold_MD.flatten())
    nll_MD, right_MD = nll_R.view_as(labels.gold_MD), right_R.view_as(labels.gold_MD)
    if weights.dpace_alpha:
        w_MD = dpace((-nll_MD.detach()).exp(), labels.supervised_MD, weights.dpace_alpha)
    else:
        w_MD = labels.supervised_MD * decay(h_MDH.shape[1], weights.beta, h_MDH.device)
    counts = prefix_counts(labels, drafter.config.drafted, top1=right_MD, selected=right_MD)
    return Loss({"dflash": 1.0}, {"dflash": (w_MD * nll_MD).sum()}, {"dflash": w_MD.sum()}, counts)


def dpace(p_gold_MD: Tensor, supervised_MD: Tensor, alpha: float) -> Tensor:
    """D-PACE's slot weights; an unsupervised slot multiplies by 1 and adds 0."""
    factor_MD = torch.where(supervised_MD, (1 - alpha) * p_gold_MD + alpha, 1.0)
    reach_MD = factor_MD.cumprod(1) * supervised_MD
    return reach_MD.flip(1).cumsum(1).flip(1) * supervised_MD

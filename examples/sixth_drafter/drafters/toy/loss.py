"""Toy's loss: DFlash's, of the corrected hidden states."""

from dataclasses import dataclass

from drafters.model.blocks import TrainingBatch
from drafters.model.crossentropy import decay, frozen_head_loss
from drafters.model.drafter import Drafter
from drafters.model.losses import Loss, prefix_counts


@dataclass(frozen=True, kw_only=True)
class Weights:
    beta: float = 7.0  # slots over which the weight of a slot falls to 1/e


def loss(drafter: Drafter, batch: TrainingBatch, weights: Weights) -> Loss:
    h_MDH, _ = drafter(batch)
    labels = batch.labels(h_MDH.shape[1])
    z_RH = drafter.head.correct(h_MDH).flatten(0, 1)
    nll_R, right_R = frozen_head_loss(z_RH, batch.head_VH, labels.gold_MD.flatten())
    nll_MD, right_MD = nll_R.view_as(labels.gold_MD), right_R.view_as(labels.gold_MD)
    w_MD = labels.supervised_MD * decay(h_MDH.shape[1], weights.beta, h_MDH.device)
    counts = prefix_counts(labels, drafter.config.drafted, top1=right_MD, selected=right_MD)
    return Loss({"toy": 1.0}, {"toy": (w_MD * nll_MD).sum()}, {"toy": w_MD.sum()}, counts)

"""DSpark's loss: cross-entropy, distance to the target's distribution, and calibration of the confidence.

L = a CE + b ||p_d - p_t||_1 + c BCE(confidence, 1 - ||p_d - p_t||_1 / 2), each a mean with weights exp(-s / beta). The
last target is the exact acceptance rate of a sampled slot (a constant for the gradient). Previous tokens are the true
ones; the first unsupervised label ends a block. The confidence's input is not detached: it trains the backbone, too.

The norms are sums over the batch, so `Loss.over` gives DeepSpec's normalisation over all ranks. Source: DeepSpec
``deepspec/modeling/dspark/loss.py``. Shapes: see `blocks`.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from drafters.model.blocks import TrainingBatch
from drafters.model.crossentropy import decay, negative_log_likelihood, over_rows
from drafters.model.drafter import Drafter
from drafters.model.losses import Loss, prefix_counts


@dataclass(frozen=True, kw_only=True)
class Weights:
    beta: float = 7.0  # slots over which the weight of a slot falls to 1/e; DeepSpec: 4 for its 7 tokens
    cross_entropy: float = 0.1  # weight of the true token's cross-entropy
    distance: float = 0.9  # weight of the distance to the target's distribution
    confidence: float = 1.0  # weight of the confidence's calibration; without effect when the head has no confidence


def loss(drafter: Drafter, batch: TrainingBatch, weights: Weights) -> Loss:
    h_MDH, _ = drafter(batch)
    labels = batch.labels(h_MDH.shape[1])
    head = drafter.head
    codes_MDr = head.markov_head.codes(labels.previous_MD, h_MDH)

    def rows(h_RH: Tensor, code_Rr: Tensor, teacher_RH: Tensor, gold_R: Tensor) -> tuple[Tensor, ...]:
        base_RV = h_RH @ batch.head_VH.T
        final_RV = base_RV + head.markov_head.markov_w2(code_Rr)
        p_target_RV = (teacher_RH @ batch.head_VH.T).detach().float().softmax(-1)
        distance_R = (final_RV.float().softmax(-1) - p_target_RV).abs().sum(-1)
        right = base_RV.argmax(-1) == gold_R, final_RV.argmax(-1) == gold_R
        return negative_log_likelihood(final_RV, gold_R), distance_R, *right

    nll_MD, distance_MD, top1_MD, selected_MD = over_rows(
        rows, len(batch.head_VH), h_MDH, codes_MDr, batch.teacher(labels), labels.gold_MD
    )
    w_MD = labels.supervised_MD.cumprod(1) * decay(h_MDH.shape[1], weights.beta, h_MDH.device)
    shares = {"cross_entropy": weights.cross_entropy, "distance": weights.distance}
    terms = {"cross_entropy": nll_MD, "distance": distance_MD}
    if head.settings.enable_confidence_head:
        shares["confidence"] = weights.confidence
        acceptance_MD = (1 - 0.5 * distance_MD).detach().clamp(0, 1)
        terms["confidence"] = calibration(head.confidence(h_MDH, labels.previous_MD), acceptance_MD)
    sums = {name: (w_MD * term_MD).sum() for name, term_MD in terms.items()}
    counts = prefix_counts(labels, drafter.config.drafted, top1=top1_MD, selected=selected_MD)
    return Loss(shares, sums, dict.fromkeys(sums, w_MD.sum()), counts)


def calibration(confidence_MD: Tensor, acceptance_MD: Tensor) -> Tensor:
    """Binary cross-entropy of each slot's confidence (a logit) with the rate it should predict."""
    return F.binary_cross_entropy_with_logits(confidence_MD.float(), acceptance_MD, reduction="none")

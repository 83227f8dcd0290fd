"""DFlash2's loss: DFlash's, plus cross-entropy of the selector's K scores behind the true predecessor.

No recipe of its authors is public. The reimplementations (ModelOpt, speculators, SpecForge PR 772) agree on teacher
forcing and on putting a true token that is not among the K candidates in the place of the last one; both terms have
the same decaying weights here, as in speculators (ModelOpt weighs the selector's slots equally). The selector's term
reaches the backbone through the candidates' logits and the hidden states.
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
    selector: float = 1.0  # weight of the selector's cross-entropy beside DFlash's


def loss(drafter: Drafter, batch: TrainingBatch, weights: Weights) -> Loss:
    h_MDH, _ = drafter(batch)
    labels = batch.labels(h_MDH.shape[1])

    def rows(h_RH: Tensor, gold_R: Tensor) -> tuple[Tensor, ...]:
        logits_RV = h_RH @ batch.head_VH.T
        unary_RK, ids_RK = logits_RV.topk(drafter.head.candidates, -1)
        gold_unary_R = logits_RV.gather(-1, gold_R[:, None])[:, 0]
        return negative_log_likelihood(logits_RV, gold_R), unary_RK, ids_RK, gold_unary_R

    nll_MD, unary_MDK, ids_MDK, gold_unary_MD = over_rows(rows, len(batch.head_VH), h_MDH, labels.gold_MD)
    among_MDK = ids_MDK == labels.gold_MD[..., None]
    found_MD, top1_MD = among_MDK.any(-1), among_MDK[..., 0]
    unary_MDK = with_gold(unary_MDK, gold_unary_MD, found_MD)
    ids_MDK = with_gold(ids_MDK, labels.gold_MD, found_MD)
    pairwise_MDK = drafter.head.candidate_selector.pairwise(labels.previous_MD, h_MDH, ids_MDK)
    scores_MDK = (unary_MDK + pairwise_MDK).float()
    rank_MD = torch.where(found_MD, among_MDK.long().argmax(-1), scores_MDK.shape[-1] - 1)
    selector_MD = negative_log_likelihood(scores_MDK.flatten(0, 1), rank_MD.flatten()).view_as(nll_MD)

    w_MD = labels.supervised_MD * decay(h_MDH.shape[1], weights.beta, h_MDH.device)
    selected_MD = found_MD & (scores_MDK.argmax(-1) == rank_MD)
    counts = prefix_counts(labels, drafter.config.drafted, top1=top1_MD, selected=selected_MD, oracle=found_MD)
    sums = {"dflash": (w_MD * nll_MD).sum(), "selector": (w_MD * selector_MD).sum()}
    return Loss({"dflash": 1.0, "selector": weights.selector}, sums, dict.fromkeys(sums, w_MD.sum()), counts)


def with_gold(values_MDK: Tensor, gold_MD: Tensor, found_MD: Tensor) -> Tensor:
    """``values_MDK`` with the last candidate's replaced where the true token was not found."""
    last_MD = torch.where(found_MD, values_MDK[..., -1], gold_MD)
    return torch.cat([values_MDK[..., :-1], last_MD[..., None]], -1)

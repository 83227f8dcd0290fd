"""LiLiCorr's loss: DFlash's, plus the lattice's cross-entropy and a penalty for distractors (Eq. 3 to 6).

L = L_DFlash + gamma (L_CE + lambda L_dist). L_CE is the cross-entropy of a slot's K scores behind the true predecessor;
L_dist the mass on each candidate times how far the target ranks it below the true token (log q of the target; its
normaliser cancels, so logits do). Both run over the oracle prefix S: the leading slots whose true token is among the
candidates, in blocks all of whose slots are supervised.

The head's loss reaches the backbone through log-probabilities, hidden states and the anchor's context row, not
through the choice of candidates, their embeddings or the target. Source: ModelOpt PR 2342. Shapes: `blocks`, `head`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from drafters.model.blocks import Labels, TrainingBatch
from drafters.model.crossentropy import decay, negative_log_likelihood, over_rows
from drafters.model.drafter import Drafter
from drafters.model.losses import Loss, prefix_counts


@dataclass(frozen=True, kw_only=True)
class Weights:
    beta: float = 7.0  # slots over which the weight of a slot falls to 1/e
    gamma: float = 0.25  # weight of the two lattice terms beside DFlash's
    distractor: float = 1.0  # lambda: weight of the distractor term beside the lattice's cross-entropy


def loss(drafter: Drafter, batch: TrainingBatch, weights: Weights) -> Loss:
    h_MDH, context_BSH = drafter(batch)
    labels = batch.labels(h_MDH.shape[1])

    def rows(h_RH: Tensor, teacher_RH: Tensor, gold_R: Tensor) -> tuple[Tensor, ...]:
        logits_RV = h_RH @ batch.head_VH.T
        ids_RK = logits_RV.detach().topk(drafter.head.candidates, -1).indices
        logp_RK = logits_RV.gather(-1, ids_RK).float() - logits_RV.float().logsumexp(-1, keepdim=True)
        target_RK = (batch.head_VH[ids_RK] @ teacher_RH[..., None])[..., 0].float().detach()
        return negative_log_likelihood(logits_RV, gold_R), ids_RK, logp_RK, target_RK

    nll_MD, ids_MDK, logp_MDK, target_MDK = over_rows(
        rows, len(batch.head_VH), h_MDH, batch.teacher(labels), labels.gold_MD
    )
    among_MDK = ids_MDK == labels.gold_MD[..., None]
    found_MD, rank_MD = among_MDK.any(-1), among_MDK.long().argmax(-1)
    before_MH = context_BSH[labels.sequence_M, (labels.anchor_M - 1).clamp_min(0)]
    embedded_MDKH = batch.embedding_VH[ids_MDK].detach()
    start_MK, pair_MSPC = drafter.head.lilicorr(embedded_MDKH, logp_MDK, h_MDH, before_MH, labels.anchor_M > 0)
    scores_MDK = behind_gold(start_MK, pair_MSPC, rank_MD)

    w_MD = labels.supervised_MD * decay(h_MDH.shape[1], weights.beta, h_MDH.device)
    prefix_MD = oracle_prefix(found_MD, labels)
    sums = {
        "dflash": (w_MD * nll_MD).sum(),
        "lattice": -(prefix_MD * gold(scores_MDK.log_softmax(-1), rank_MD)).sum(),
        "distractor": (prefix_MD * distractors(scores_MDK, target_MDK, rank_MD)).sum(),
    }
    norms = {"dflash": w_MD.sum(), "lattice": prefix_MD.sum(), "distractor": prefix_MD.sum()}
    shares = {"dflash": 1.0, "lattice": weights.gamma, "distractor": weights.gamma * weights.distractor}
    selected_MD = found_MD & (scores_MDK.argmax(-1) == rank_MD)
    counts = prefix_counts(
        labels, drafter.config.drafted, top1=among_MDK[..., 0], selected=selected_MD, oracle=found_MD
    )
    return Loss(shares, sums, norms, counts)


def behind_gold(start_MK: Tensor, pair_MSPC: Tensor, rank_MD: Tensor) -> Tensor:
    """Scores [M, D, K] of each slot's candidates behind the true predecessor (Eq. 2)."""
    row_MS1C = rank_MD[:, :-1, None, None].expand(-1, -1, 1, pair_MSPC.shape[-1])
    return torch.cat([start_MK[:, None], pair_MSPC.gather(2, row_MS1C)[:, :, 0]], 1)


def oracle_prefix(found_MD: Tensor, labels: Labels) -> Tensor:
    """S as zeros and ones: [M, D]."""
    return found_MD.long().cumprod(1) * labels.supervised_MD.all(1, keepdim=True)


def distractors(scores_MDK: Tensor, target_MDK: Tensor, rank_MD: Tensor) -> Tensor:
    """Sum over k of P(k) relu(target logit of the true token - target logit of k): [M, D] (Eq. 4)."""
    behind_MDK = (gold(target_MDK, rank_MD)[..., None] - target_MDK).clamp_min(0)
    return (scores_MDK.softmax(-1) * behind_MDK).sum(-1)


def gold(values_MDK: Tensor, rank_MD: Tensor) -> Tensor:
    return values_MDK.gather(-1, rank_MD[..., None])[..., 0]

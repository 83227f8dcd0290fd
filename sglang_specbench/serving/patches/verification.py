"""Exact sampling verification in torch, for devices where SGLang has only CUDA and Triton kernels.

Two rules, each with the signature, the in-place outputs and the coins of the kernel it stands for (SGLang 0.5.23):

* `point_mass_rule` for argmax proposals (``kernels/jit/include/sgl_kernel/speculative/sampling.cuh``,
  TreeSpeculativeSamplingTargetOnly, restricted to a chain: one candidate a level). Draft x is accepted with
  probability p(x); after a rejection the token comes from p without x, renormalised.
* `chain_rule` for sampled proposals (``kernels/ops/speculative/reject_sampling.py``, token-wise branch). Draft x ~ q is
  accepted with probability min(1, p(x)/q(x)); after a rejection the token comes from relu(p - q), renormalised
  (Leviathan et al. 2023, theorem 1).

Both emit a token distributed as p at every position. Tests: enumeration over a tiny vocabulary.

Shapes: B requests, W window (anchor and drafts), V vocabulary.
"""

import torch


def point_mass_rule(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    retrive_index: torch.Tensor,
    retrive_next_token: torch.Tensor,
    retrive_next_sibling: torch.Tensor,
    uniform_samples: torch.Tensor,
    uniform_samples_for_final_sampling: torch.Tensor,
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor,
    threshold_single: float = 1.0,
    threshold_acc: float = 1.0,
    deterministic: bool = True,
) -> None:
    """Verify a chain of argmax drafts; ``predicts``, ``accept_index`` and ``accept_token_num`` are written.

    ``draft_probs`` is scratch, as in the kernel. Thresholds below 1 would not keep the distribution: ValueError.
    """
    if threshold_single != 1.0 or threshold_acc != 1.0:
        raise ValueError("acceptance thresholds other than 1.0 do not preserve the target's distribution")
    p_BS = _probability_of_drafts(target_probs, candidates)
    # a token of probability 0 is never accepted, even by a coin of 0
    accepted_BS = (p_BS > 0) & (uniform_samples[:, : p_BS.shape[1]] < p_BS)
    length_B = _leading(accepted_BS)
    residual_BV = _rows(target_probs, length_B).clone()
    rejected = length_B < p_BS.shape[1]
    # relu(p - p(x) at x): the rejected draft loses its mass, nothing else does
    residual_BV[rejected, candidates[rejected, length_B[rejected] + 1]] = 0
    token_B = _draw(residual_BV, uniform_samples_for_final_sampling)
    _write(predicts, accept_index, accept_token_num, candidates, retrive_index, length_B, token_B)


def chain_rule(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    retrive_index: torch.Tensor,
    retrive_next_token: torch.Tensor,
    retrive_next_sibling: torch.Tensor,
    uniform_samples: torch.Tensor,
    uniform_samples_for_final_sampling: torch.Tensor,
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor,
    threshold_single: float,
    threshold_acc: float,
    deterministic: bool,
    *,
    block_verification: bool = False,
) -> None:
    """Verify a chain of drafts sampled from ``draft_probs`` [B, W-1, V]; the outputs are written in place."""
    if block_verification:
        raise ValueError("block verification (--speculative-use-block-verification) has no CPU version")
    drafts = candidates.shape[1] - 1
    p_BS = _probability_of_drafts(target_probs, candidates)
    q_BS = draft_probs.gather(2, candidates[:, 1:, None].long())[..., 0]
    proper_BS = (q_BS > 0) & (q_BS <= 1)  # False for NaN: such a draft is never accepted
    length_B = _leading(proper_BS & (uniform_samples[:, :drafts] * q_BS < p_BS))
    residual_BV = _rows(target_probs, length_B).clone()
    rejected = length_B < drafts
    q_BV = _rows(draft_probs, length_B.clamp_max(drafts - 1))[rejected]
    q_BV = torch.where((q_BV >= 0) & (q_BV <= 1), q_BV, 0)
    residual_BV[rejected] = (residual_BV[rejected] - q_BV).clamp_min(0)
    token_B = _draw(residual_BV, uniform_samples_for_final_sampling)
    _write(predicts, accept_index, accept_token_num, candidates, retrive_index, length_B, token_B)


def _probability_of_drafts(probs_BWV: torch.Tensor, candidates_BW: torch.Tensor) -> torch.Tensor:
    """[B, W-1]: what each row gives to the draft that follows it."""
    return probs_BWV[:, :-1].gather(2, candidates_BW[:, 1:, None].long())[..., 0]


def _leading(accepted_BS: torch.Tensor) -> torch.Tensor:
    """How many drafts stand before the first rejection."""
    return accepted_BS.long().cumprod(dim=1).sum(dim=1)


def _rows(probs_BSV: torch.Tensor, index_B: torch.Tensor) -> torch.Tensor:
    return probs_BSV[torch.arange(index_B.shape[0]), index_B]


def _draw(weights_BV: torch.Tensor, coin_B: torch.Tensor) -> torch.Tensor:
    """Inverse of the cumulative weights at coin * sum; never a token of weight 0 unless all are 0."""
    cumulative_BV = weights_BV.double().cumsum(dim=1)  # float32 sums of 150k terms would bias the tail
    aim_B1 = coin_B.double()[:, None] * cumulative_BV[:, -1:]
    token_B = (cumulative_BV <= aim_B1).sum(dim=1)
    return token_B.clamp_max(weights_BV.shape[1] - 1)


def _write(
    predicts: torch.Tensor,
    accept_index_BW: torch.Tensor,
    accept_token_num_B: torch.Tensor,
    candidates_BW: torch.Tensor,
    retrive_index_BW: torch.Tensor,
    length_B: torch.Tensor,
    token_B: torch.Tensor,
) -> None:
    """Outputs as the kernels leave them; entries behind the last accepted one are undefined there, and kept here."""
    width = accept_index_BW.shape[1]
    position_W = torch.arange(width)
    reached_BW = position_W[None] <= length_B[:, None]
    accept_index_BW[reached_BW] = retrive_index_BW[:, :width][reached_BW].to(accept_index_BW.dtype)
    follower_BW = torch.cat([candidates_BW[:, 1:], candidates_BW[:, :1]], dim=1)
    follower_BW = torch.where(position_W[None] == length_B[:, None], token_B[:, None], follower_BW)
    predicts[retrive_index_BW[reached_BW]] = follower_BW[reached_BW].to(predicts.dtype)
    accept_token_num_B.copy_(length_B)

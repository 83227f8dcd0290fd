"""LiLiCorr's lattice decoded exactly (Viterbi) instead of greedily slot by slot: the decode-rule ablation.

Maximises start(c_1) + sum_s pair_s(c_{s-1}, c_s), the paper's g(c). Argmax proposals only, so that verification by the
point-mass rule stays exact. Stands in for ``models.lilicorr.lilicorr_sample_path`` (SGLang 0.5.23), same signature.

Shapes: B requests, S slots, K candidates a slot (i before j).
"""

import torch
import triton  # comes with SGLang, also where there is no GPU
import triton.language as tl


def exact_path(
    log_start: torch.Tensor,
    log_pair: torch.Tensor,
    candidate_tokens: torch.Tensor,
    uniforms: torch.Tensor,
    temperatures: torch.Tensor,
    greedy_mask: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Best path: tokens int64 [B, S] and its point mass float32 [B, S, K]. Ties go to the lower candidate.

    ``log_start`` [B, K], ``log_pair`` [B, S-1, K, K], ``candidate_tokens`` [B, S, K]; coins and temperatures unused.
    """
    decode = _exact_path_triton if log_start.is_cuda else exact_path_torch
    return decode(log_start.float(), log_pair.float(), candidate_tokens)


def exact_path_torch(
    start_BK: torch.Tensor, pair_BSKK: torch.Tensor, candidates_BSK: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The reference: max-sum forwards, then back along the argmaxes."""
    score_BK, back = start_BK, []
    for step in range(pair_BSKK.shape[1]):
        total_Bij = score_BK[:, :, None] + pair_BSKK[:, step]
        score_BK, best_BK = total_Bij.max(dim=1)
        back.append(best_BK)
    index_B = score_BK.argmax(dim=1)
    path = [index_B]
    for best_BK in reversed(back):
        index_B = best_BK.gather(1, index_B[:, None])[:, 0]
        path.append(index_B)
    path_BS = torch.stack(path[::-1], dim=1)
    tokens_BS = candidates_BSK.gather(2, path_BS[..., None])[..., 0]
    mass_BSK = torch.nn.functional.one_hot(path_BS, candidates_BSK.shape[2])
    return tokens_BS.long(), mass_BSK.float()


def _exact_path_triton(
    start_BK: torch.Tensor, pair_BSKK: torch.Tensor, candidates_BSK: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same in one kernel, one program a request, safe to capture in a CUDA graph."""
    batch, slots, topk = candidates_BSK.shape
    back = torch.empty((batch, slots, topk), dtype=torch.int32, device=start_BK.device)
    tokens_BS = torch.empty((batch, slots), dtype=torch.int64, device=start_BK.device)
    mass_BSK = torch.empty((batch, slots, topk), dtype=torch.float32, device=start_BK.device)
    _exact_path_kernel[(batch,)](
        start_BK.contiguous(),
        pair_BSKK.contiguous(),
        candidates_BSK.contiguous(),
        back,
        tokens_BS,
        mass_BSK,
        slots=slots,
        K=topk,
        num_warps=1,
    )
    return tokens_BS, mass_BSK


# No annotations but tl.constexpr: the compiler evaluates them, and knows no typing.Any (the interpreter does not look).
@triton.jit
def _exact_path_kernel(  # type: ignore[no-untyped-def]
    start_ptr,
    pair_ptr,
    cand_ptr,
    back_ptr,
    token_ptr,
    mass_ptr,
    slots: tl.constexpr,
    K: tl.constexpr,
):
    row = tl.program_id(0)
    k = tl.arange(0, K)
    score = tl.load(start_ptr + row * K + k)
    for s in range(1, slots):
        base = (row * (slots - 1) + (s - 1)) * K * K
        total = score[:, None] + tl.load(pair_ptr + base + k[:, None] * K + k[None, :])
        best = tl.max(total, axis=0)
        arg = tl.min(tl.where(total == best[None, :], k[:, None], K), axis=0)
        tl.store(back_ptr + (row * slots + s) * K + k, arg)
        score = best
    tl.debug_barrier()  # the way back reads what other lanes have stored
    index = tl.min(tl.where(score == tl.max(score, axis=0), k, K), axis=0)
    for r in range(slots):
        s = slots - 1 - r
        tl.store(token_ptr + row * slots + s, tl.load(cand_ptr + (row * slots + s) * K + index))
        tl.store(mass_ptr + (row * slots + s) * K + k, tl.where(k == index, 1.0, 0.0))
        if s > 0:
            index = tl.load(back_ptr + (row * slots + s) * K + index)

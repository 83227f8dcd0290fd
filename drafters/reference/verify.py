"""Verification of one drafted block: the rules that keep the output distribution the target's.

Knows probabilities, drafted tokens and coins; not models, caches or devices. Every draw takes its coin (uniform on
[0, 1)) as an argument, so a rule can be proved by enumerating coins and compared with SGLang's kernels coin by coin.

Rules: the speculative sampling round of Leviathan et al. (arXiv 2211.17192, algorithm 1) and Chen et al. (arXiv
2302.01318, algorithm 2). A point-mass proposal (argmax arms) is the case q = one-hot: accept d with probability p(d),
else draw from p without d. q must be the distribution that the draft was in fact drawn from.

Shapes: B rows, D drafted slots, W = D + 1 verified positions, V vocabulary.
p_BWV[:, s] is the target's distribution of the token that slot s holds, given the slots before it; p_BWV[:, D] the
bonus position's.
"""

import torch
from torch import Tensor

from drafters.model.draw import draw


def processed_target(logits: Tensor, temperature: float, top_k: int = -1, top_p: float = 1.0) -> Tensor:
    """The distribution (last axis) that a request with these settings samples from, in float64.

    Temperature 0 is a point mass on the argmax. Top-p acts on what top-k left, renormalised: SGLang 0.5.23's order in
    verification (``speculative/dflash_utils.py:build_speculative_verify_target_probs``). ``top_k`` <= 0: no cut.
    """
    if temperature == 0:
        return one_hot(logits.argmax(-1), logits.shape[-1])
    p = torch.softmax(logits.double() / temperature, -1)
    order = p.argsort(dim=-1, descending=True, stable=True)
    p_sorted = p.gather(-1, order)
    if 0 < top_k < p.shape[-1]:
        p_sorted[..., top_k:] = 0
        p_sorted /= p_sorted.sum(-1, keepdim=True)
    before = p_sorted.cumsum(-1) - p_sorted  # mass of the more likely tokens: the first token always stays
    p_sorted[before > top_p] = 0
    p_sorted /= p_sorted.sum(-1, keepdim=True)
    return torch.zeros_like(p).scatter(-1, order, p_sorted)


def one_hot(tokens: Tensor, vocabulary: int) -> Tensor:
    """Point masses in float64: [...] -> [..., V]."""
    return torch.nn.functional.one_hot(tokens, vocabulary).double()


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """Half the L1 distance over the last axis, in [0, 1]."""
    return 0.5 * (p - q).abs().sum(-1)


def acceptance_rate(p: Tensor, q: Tensor) -> Tensor:
    """Probability that a draft from q is accepted: sum min(p, q) = 1 - TV (arXiv 2211.17192, theorem 3.5)."""
    return 1 - total_variation(p, q)


def residual(p: Tensor, q: Tensor) -> Tensor:
    """max(p - q, 0) normalised: what a rejected slot is redrawn from; p itself where p <= q everywhere (p = q)."""
    rest = (p - q).clamp_min(0)
    mass = rest.sum(-1, keepdim=True)
    return torch.where(mass > 0, rest / mass.clamp_min(torch.finfo(rest.dtype).tiny), p)


def greedy_match(draft_BD: Tensor, target_BW: Tensor) -> tuple[Tensor, Tensor]:
    """Temperature 0: accept drafts while they equal the target's argmax ``target_BW``.

    Returns the number of accepted drafts [B] (0..D) and the token that follows them [B].
    """
    accepted_B = (draft_BD == target_BW[:, :-1]).long().cumprod(1).sum(1)
    return accepted_B, target_BW.gather(1, accepted_B[:, None])[:, 0]


def accepts(draft_BD: Tensor, p_BWV: Tensor, q_BDV: Tensor, coin_BD: Tensor) -> Tensor:
    """Whether each slot on its own passes u < p(d) / q(d), written u q(d) < p(d) so that nothing divides by zero."""
    index = draft_BD[..., None]
    p_BD = p_BWV[:, :-1].gather(-1, index)[..., 0]
    q_BD = q_BDV.gather(-1, index)[..., 0]
    return coin_BD * q_BD < p_BD


def speculative_round(
    draft_BD: Tensor,
    p_BWV: Tensor,
    q_BDV: Tensor | None,
    coin_BD: Tensor,
    last_coin_B: Tensor,
    limit_B: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One whole round for all rows at once: accept in order, redraw at the first rejection, bonus if none.

    ``q_BDV`` None: point-mass proposals. ``limit_B``: only the first ``limit_B`` slots of a row are verified (see
    ``scheduled``); the token after them is then drawn from p. Returns accepted drafts [B] and the next token [B]:
    the row emits ``draft[:accepted]`` and that token.
    """
    rows, slots = draft_BD.shape
    q_BDV = one_hot(draft_BD, p_BWV.shape[-1]) if q_BDV is None else q_BDV
    run_B = accepts(draft_BD, p_BWV, q_BDV, coin_BD).long().cumprod(1).sum(1)
    limit_B = torch.full_like(run_B, slots) if limit_B is None else limit_B
    accepted_B = torch.minimum(run_B, limit_B)
    row_B = torch.arange(rows, device=draft_BD.device)
    p_BV = p_BWV[row_B, accepted_B]
    residual_BV = residual(p_BV, q_BDV[row_B, accepted_B.clamp_max(slots - 1)])
    rejected_B1 = (accepted_B < limit_B)[:, None]
    return accepted_B, draw(torch.where(rejected_B1, residual_BV, p_BV), last_coin_B)

"""The four silent ways to lose exactness, each a `drafters.reference.verify.speculative_round` with one thing wrong."""

import torch

from drafters.model.draw import draw
from drafters.reference.verify import accepts, one_hot, residual, speculative_round


def exact(draft_BD, p_BWV, q_BDV, coin_BD, last_coin_B):
    return speculative_round(draft_BD, p_BWV, q_BDV, coin_BD, last_coin_B)


def resample_from_p(draft_BD, p_BWV, q_BDV, coin_BD, last_coin_B):
    """A rejected slot is redrawn from p instead of the residual."""
    accepted_B = accepts(draft_BD, p_BWV, q_BDV, coin_BD).long().cumprod(1).sum(1)
    return accepted_B, draw(p_BWV[torch.arange(len(draft_BD)), accepted_B], last_coin_B)


def accept_by_rank(draft_BD, p_BWV, q_BDV, coin_BD, last_coin_B):
    """A draft among the target's six likeliest tokens is accepted, whatever its probability."""
    top_BD6 = p_BWV[:, :-1].topk(6, -1).indices
    accepted_B = (top_BD6 == draft_BD[..., None]).any(-1).long().cumprod(1).sum(1)
    row_B = torch.arange(len(draft_BD))
    p_BV = p_BWV[row_B, accepted_B]
    slot_B = accepted_B.clamp_max(draft_BD.shape[1] - 1)
    rest_BV = residual(p_BV, one_hot(draft_BD[row_B, slot_B], p_BV.shape[-1]))
    return accepted_B, draw(torch.where((accepted_B < draft_BD.shape[1])[:, None], rest_BV, p_BV), last_coin_B)


def q_not_the_sampled(draft_BD, p_BWV, q_BDV, coin_BD, last_coin_B):
    """The verifier gets a sharper q than the one that was drawn from."""
    return speculative_round(draft_BD, p_BWV, torch.softmax(q_BDV.log() / 0.6, -1), coin_BD, last_coin_B)


def verify_unless_common(draft_BD, p_BWV, q_BDV, coin_BD, last_coin_B):
    """A block that starts with token 0 is not verified: whether to verify depends on what was drafted."""
    limit_B = torch.where(draft_BD[:, 0] == 0, 0, draft_BD.shape[1])
    return speculative_round(draft_BD, p_BWV, q_BDV, coin_BD, last_coin_B, limit_B)


FAULTS = (resample_from_p, accept_by_rank, q_not_the_sampled, verify_unless_common)

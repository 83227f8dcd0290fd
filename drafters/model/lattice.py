"""Paths through a lattice of K candidates per slot, scored between neighbouring slots.

Knows scores; not where they come from (LiLiCorr's cosines, DFlash2's codebooks) nor tokens. ``start_BK`` scores the
first slot's candidates, ``pair_BSPC[:, s]`` those of slot s + 2 (C) behind each of slot s + 1 (P). Walks commit from
left to right; `best_path` maximises the whole sum. Ties go to the first candidate.

Shapes: B blocks, D slots (S = D - 1 transitions), K candidates.
"""

import torch
from torch import Tensor

from drafters.model.draw import draw

_COLDEST = 1e-5  # temperature below which SGLang 0.5.23 does not divide (``lilicorr_utils.py``, ``models/dflash.py``)


def greedy_walk(start_BK: Tensor, pair_BSPC: Tensor) -> Tensor:
    """Ranks [B, D]: the best candidate of each slot behind the one just chosen."""
    chosen_B = start_BK.argmax(-1)
    path = [chosen_B]
    for pair_BPC in pair_BSPC.unbind(1):
        chosen_B = _behind(pair_BPC, chosen_B).argmax(-1)
        path.append(chosen_B)
    return torch.stack(path, 1)


def sampled_walk(start_BK: Tensor, pair_BSPC: Tensor, temperature: float, coins_BD: Tensor) -> tuple[Tensor, Tensor]:
    """Ranks [B, D] drawn slot by slot from softmax(score / temperature), and those distributions q [B, D, K]."""
    temperature = max(temperature, _COLDEST)
    q_BK = (start_BK / temperature).softmax(-1)
    chosen_B = draw(q_BK, coins_BD[:, 0])
    path, q = [chosen_B], [q_BK]
    for pair_BPC, coin_B in zip(pair_BSPC.unbind(1), coins_BD[:, 1:].unbind(1), strict=True):
        q_BK = (_behind(pair_BPC, chosen_B) / temperature).softmax(-1)
        chosen_B = draw(q_BK, coin_B)
        path.append(chosen_B)
        q.append(q_BK)
    return torch.stack(path, 1), torch.stack(q, 1)


def best_path(start_BK: Tensor, pair_BSPC: Tensor) -> Tensor:
    """Ranks [B, D] of the path with the greatest sum of scores (Viterbi)."""
    best_BK, origins = start_BK, []
    for pair_BPC in pair_BSPC.unbind(1):
        best_BK, origin_BK = (best_BK[:, :, None] + pair_BPC).max(1)
        origins.append(origin_BK)
    chosen_B = best_BK.argmax(-1)
    path = [chosen_B]
    for origin_BK in reversed(origins):
        chosen_B = origin_BK.gather(1, chosen_B[:, None])[:, 0]
        path.append(chosen_B)
    return torch.stack(path[::-1], 1)


def _behind(pair_BPC: Tensor, chosen_B: Tensor) -> Tensor:
    return pair_BPC[torch.arange(len(chosen_B), device=chosen_B.device), chosen_B]

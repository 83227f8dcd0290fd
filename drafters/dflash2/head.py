"""DFlash2's candidate selector: the top K tokens of each slot, scored by a bilinear form behind each predecessor.

score[p, c] = unary[c] + sum over ranks r of A[p, r] * (W h)[r] * B[c, r], with h the slot's hidden state, A and B two
codebooks of the vocabulary. The predecessor of the first slot is the anchor's token.

Source: SGLang 0.5.23 ``models/dflash.py:CandidateSelector``. Shapes: see `proposal`; P predecessors, C candidates,
r rank.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from drafters.model.config import DrafterConfig
from drafters.model.lattice import greedy_walk, sampled_walk
from drafters.model.proposal import Drafting, Proposal, over_vocabulary

_STD = 0.02


@dataclass(frozen=True, kw_only=True)
class Settings:
    selector_rank: int = 256  # width of the codes of predecessor and successor
    selector_top_k: int = 16  # candidates of a slot: a power of two: SGLang's walk kernel asks for it

    widths: ClassVar[tuple[str, ...]] = ("selector_rank",)  # see `training.scaled_recipes`
    architecture: ClassVar[str] = "DFlash2DraftModel"
    counts_anchor: ClassVar[bool] = True
    anchor_predicts: ClassVar[bool] = False

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> "Settings":
        nested = config["dflash_config"]
        return cls(selector_rank=nested["selector_rank"], selector_top_k=nested["selector_top_k"])

    def to_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Keys of the top level and of ``dflash_config``."""
        return {}, {"selector_rank": self.selector_rank, "selector_top_k": self.selector_top_k}


class Selector(nn.Module):
    """The pairwise term starts at exactly zero, because the successors' codebook does."""

    def __init__(self, vocabulary: int, width: int, rank: int) -> None:
        super().__init__()
        self.predecessor_codebook = nn.Parameter(torch.randn(vocabulary, rank) * _STD)
        self.successor_codebook = nn.Parameter(torch.zeros(vocabulary, rank))
        self.hidden_projection = nn.Linear(width, rank, bias=False)
        nn.init.normal_(self.hidden_projection.weight, std=_STD)

    def pairwise(self, before: Tensor, h_H: Tensor, ids_C: Tensor) -> Tensor:
        """The bilinear term of ids [..., C] behind tokens ``before`` [...] or [..., P]: [..., C] or [..., P, C]."""
        many = before.dim() == ids_C.dim()
        gate = self.hidden_projection(h_H)
        left = self.predecessor_codebook[before] * (gate[..., None, :] if many else gate)
        right = self.successor_codebook[ids_C]
        return left @ right.mT if many else (right @ left[..., None])[..., 0]


class Head(nn.Module):
    BRANCHES: ClassVar[dict[str, str]] = {
        "predecessor": "candidate_selector.predecessor_codebook",
        "successor": "candidate_selector.successor_codebook",
        "hidden": "candidate_selector.hidden_projection",
    }

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.candidates = config.head.selector_top_k
        self.candidate_selector = Selector(config.vocab_size, config.hidden_size, config.head.selector_rank)

    def lattice(self, unary_BDK: Tensor, ids_BDK: Tensor, h_BDH: Tensor, anchor_B: Tensor) -> tuple[Tensor, Tensor]:
        """Start scores [B, K] and pair scores [B, D - 1, K, K] of the candidates."""
        selector = self.candidate_selector
        start_BK = unary_BDK[:, 0] + selector.pairwise(anchor_B, h_BDH[:, 0], ids_BDK[:, 0])
        pair_BSPC = selector.pairwise(ids_BDK[:, :-1], h_BDH[:, 1:], ids_BDK[:, 1:])
        return start_BK.float(), (unary_BDK[:, 1:, None] + pair_BSPC).float()

    def propose(self, drafting: Drafting) -> Proposal:
        """Greedy walk, or with coins a sample from softmax(score / T) over the K candidates."""
        logits_BDV = drafting.h_BDH @ drafting.head_VH.T
        unary_BDK, ids_BDK = logits_BDV.topk(self.candidates, -1)
        lattice = self.lattice(unary_BDK, ids_BDK, drafting.h_BDH, drafting.anchor_B)
        if drafting.coins_BD is None:
            return Proposal(ids_BDK.gather(-1, greedy_walk(*lattice)[..., None])[..., 0])
        path_BD, q_BDK = sampled_walk(*lattice, drafting.temperature, drafting.coins_BD)
        tokens_BD = ids_BDK.gather(-1, path_BD[..., None])[..., 0]
        return Proposal(tokens_BD, over_vocabulary(q_BDK, ids_BDK, logits_BDV.shape[-1]))

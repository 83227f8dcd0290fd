"""What a head drafts from and what it hands to verification, for all arms alike.

Knows no formula. A proposal without ``q`` is a point mass on its tokens (argmax arms); with ``q`` each token was drawn
from that slot's row of it, given the tokens before.

Shapes: B blocks, D drafted slots, H width, V vocabulary, K candidates.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Drafting:
    """One block of every row in a batch. ``coins_BD`` uniform on [0, 1) ask for samples, None for the argmax.

    ``before_BH`` is the context row just before the anchor (zero and ``has_before_B`` false at position 0). ``pool``
    is Domino's (0: whole vocabulary), ``exact_path`` LiLiCorr's; the other heads ignore them.
    """

    h_BDH: Tensor
    anchor_B: Tensor
    before_BH: Tensor
    has_before_B: Tensor
    embedding_VH: Tensor
    head_VH: Tensor
    temperature: float = 0.0
    coins_BD: Tensor | None = None
    pool: int = 0
    exact_path: bool = False


@dataclass(frozen=True)
class Proposal:
    tokens_BD: Tensor
    q_BDV: Tensor | None = None


def over_vocabulary(q_BDK: Tensor, ids_BDK: Tensor, vocabulary: int) -> Tensor:
    """Candidates' probabilities put into the whole vocabulary, zero elsewhere."""
    return q_BDK.new_zeros(*q_BDK.shape[:-1], vocabulary).scatter(-1, ids_BDK, q_BDK)

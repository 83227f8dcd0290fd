"""Domino's head: a GRU reads the tokens chosen so far, and a bottleneck turns its state into a correction of logits.

logits of slot i = base_i + U silu(W [z_i ; g]), z_i the slot's hidden state, g the GRU's state after the anchor and the
tokens before slot i. The first slot keeps its base logits. Serving scores a pool of tokens that is shared by the
block (SGLang's default 2,048), training the whole vocabulary.

Source: SGLang 0.5.23 ``speculative/domino_utils.py``; SpecForge 0.2.0. Shapes: see `proposal`; P pool, G GRU width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from drafters.model.config import DrafterConfig
from drafters.model.proposal import Drafting, Proposal
from sglang_specbench.checkpoint_kind import setting

_STD = 0.02


@dataclass(frozen=True, kw_only=True)
class Settings:
    shift_label: bool = True  # the anchor's row predicts the first drafted token
    gru_hidden_dim: int = 1024  # width of the state over the tokens chosen so far
    emb_dim: int = 256  # width of the bottleneck before the vocabulary

    widths: ClassVar[tuple[str, ...]] = ("gru_hidden_dim", "emb_dim")  # see `training.scaled_recipes`
    architecture: ClassVar[str] = "DFlashDraftModel"
    counts_anchor: ClassVar[bool] = True

    @property
    def anchor_predicts(self) -> bool:
        return self.shift_label

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> "Settings":
        return cls(**{name: setting(config, name) for name in ("shift_label", "gru_hidden_dim", "emb_dim")})

    def to_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Keys of the top level and of ``dflash_config``."""
        sizes = {"gru_hidden_dim": self.gru_hidden_dim, "emb_dim": self.emb_dim}
        names = {"projector_type": "domino", "shift_label": self.shift_label, "pure_draft_prefix_len": 1}
        return {}, {**names, **sizes}


class Head(nn.Module):
    BRANCHES: ClassVar[dict[str, str]] = {"tokens": "prefix_gru"}

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        width, state, bottleneck = config.hidden_size, config.head.gru_hidden_dim, config.head.emb_dim
        self.prefix_gru = nn.GRU(width, state, bias=False, batch_first=True)
        self.embed_proj = nn.Sequential(
            nn.Linear(width + state, bottleneck, bias=False),
            nn.SiLU(),
            nn.Linear(bottleneck, config.vocab_size, bias=False),
        )
        for linear in (self.embed_proj[0], self.embed_proj[2]):
            nn.init.normal_(linear.weight, std=_STD)

    def states(self, prefix_BTH: Tensor) -> Tensor:
        """The GRU's state after each of the embedded tokens ``prefix_BTH``, from a zero state: [B, T, G]."""
        return self.prefix_gru(prefix_BTH)[0]

    def bottleneck(self, z_BH: Tensor, state_BG: Tensor) -> Tensor:
        """silu(W [z ; g]), which ``embed_proj[2]`` (U) turns into a correction of the logits."""
        return F.silu(self.embed_proj[0](torch.cat([z_BH, state_BG], -1)))

    def propose(self, drafting: Drafting) -> Proposal:
        """Argmax over the pool, at any temperature (SGLang 0.5.23 has no sampled mode)."""
        base_BDV = drafting.h_BDH @ drafting.head_VH.T
        token_B = base_BDV[:, 0].argmax(-1)
        tokens, pool_BP = [token_B], self._pool(base_BDV[:, 1:], drafting.pool)
        output, state = self.prefix_gru(drafting.embedding_VH[torch.stack([drafting.anchor_B, token_B], 1)])
        for slot in range(1, base_BDV.shape[1]):
            narrow_BE = self.bottleneck(drafting.h_BDH[:, slot], output[:, -1])
            correction_BP = (self.embed_proj[2].weight[pool_BP] @ narrow_BE[..., None])[..., 0]
            logits_BP = base_BDV[:, slot].gather(1, pool_BP) + correction_BP
            token_B = pool_BP.gather(1, logits_BP.argmax(-1, keepdim=True))[:, 0]
            tokens.append(token_B)
            output, state = self.prefix_gru(drafting.embedding_VH[token_B][:, None], state)
        return Proposal(torch.stack(tokens, 1))

    @staticmethod
    def _pool(base_BDV: Tensor, size: int) -> Tensor:
        """The ``size`` tokens with the highest base logit in any slot; all tokens, in order, for 0 or too many."""
        vocabulary = base_BDV.shape[-1]
        if not 0 < size < vocabulary:
            return torch.arange(vocabulary, device=base_BDV.device).expand(len(base_BDV), -1)
        return base_BDV.amax(1).topk(size, -1).indices

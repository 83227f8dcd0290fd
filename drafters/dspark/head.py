"""DSpark's heads: a low-rank bias of the logits from the previous token (Markov), and a confidence for each slot.

vanilla: bias = W2 W1[prev]; gated: W2 (sigmoid(gate [h ; W1[prev]]) * W1[prev]); rnn: a gated state s runs along the
slots and the bias is W2 tanh(o). The confidence is a logit of the probability that the slot's sample is accepted; it
plays no part in drafting.

Source: SGLang 0.5.23 ``models/dspark.py``; DeepSpec ``modeling/dspark/markov_head.py``. Shapes: see `proposal`; r rank.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from drafters.model.config import DrafterConfig
from drafters.model.draw import draw
from drafters.model.proposal import Drafting, Proposal

_STD = 0.02
_KEYS = [
    "markov_rank",
    "markov_head_type",
    "enable_confidence_head",
    "confidence_head_with_markov",
]  # SGLang reads these at the top level only


@dataclass(frozen=True, kw_only=True)
class Settings:
    markov_rank: int = 256  # width of the previous token's code
    markov_head_type: Literal["vanilla", "gated", "rnn"] = "vanilla"  # how the code is made
    enable_confidence_head: bool = True  # trains a confidence for each slot, for scheduled verification
    confidence_head_with_markov: bool = True  # the confidence sees the previous token's code, too

    widths: ClassVar[tuple[str, ...]] = ("markov_rank",)  # see `training.scaled_recipes`
    architecture: ClassVar[str] = "Qwen3DSparkModel"
    counts_anchor: ClassVar[bool] = False
    anchor_predicts: ClassVar[bool] = True

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> "Settings":
        return cls(**{name: config[name] for name in _KEYS})

    def to_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Keys of the top level and of ``dflash_config``."""
        return {**{name: getattr(self, name) for name in _KEYS}, "sample_from_anchor": True}, {}


class Markov(nn.Module):
    """The bias as a product ``code @ markov_w2.T`` with a code of ``rank`` numbers for each slot."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        width, rank, self.kind = config.hidden_size, config.head.markov_rank, config.head.markov_head_type
        self.markov_w1 = nn.Embedding(config.vocab_size, rank)
        self.markov_w2 = nn.Linear(rank, config.vocab_size, bias=False)
        if self.kind == "gated":
            self.gate_proj = nn.Linear(width + rank, rank)
        if self.kind == "rnn":
            self.joint_proj = nn.Linear(2 * rank + width, 3 * rank)

    def first_state(self, h_BH: Tensor) -> Tensor:
        return h_BH.new_zeros(*h_BH.shape[:-1], self.markov_w1.embedding_dim)

    def code(self, previous_B: Tensor, h_BH: Tensor, state_Br: Tensor) -> tuple[Tensor, Tensor]:
        """The slot's code and the next state (which only ``rnn`` has)."""
        embedded_Br = self.markov_w1(previous_B)
        if self.kind == "vanilla":
            return embedded_Br, state_Br
        if self.kind == "gated":
            return torch.sigmoid(self.gate_proj(torch.cat([h_BH, embedded_Br], -1))) * embedded_Br, state_Br
        gate, candidate, out = self.joint_proj(torch.cat([state_Br, embedded_Br, h_BH], -1)).chunk(3, -1)
        gate = torch.sigmoid(gate)
        return torch.tanh(out), gate * state_Br + (1 - gate) * torch.tanh(candidate)

    def codes(self, previous_BD: Tensor, h_BDH: Tensor) -> Tensor:
        """Codes [B, D, r] of all slots behind the given tokens."""
        if self.kind != "rnn":
            return self.code(previous_BD, h_BDH, h_BDH)[0]
        state, codes = self.first_state(h_BDH[:, 0]), []
        for previous_B, h_BH in zip(previous_BD.unbind(1), h_BDH.unbind(1), strict=True):
            code, state = self.code(previous_B, h_BH, state)
            codes.append(code)
        return torch.stack(codes, 1)


class Confidence(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x)[..., 0]


class Head(nn.Module):
    BRANCHES: ClassVar[dict[str, str]] = {"token": "markov_head.markov_w1"}

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.settings: Settings = config.head
        self.markov_head = Markov(config)
        if self.settings.enable_confidence_head:
            extra = self.settings.markov_rank if self.settings.confidence_head_with_markov else 0
            self.confidence_head = Confidence(config.hidden_size + extra)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=_STD)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def confidence(self, h_BDH: Tensor, previous_BD: Tensor) -> Tensor:
        """Logits [B, D] of each slot's acceptance."""
        if not self.settings.confidence_head_with_markov:
            return self.confidence_head(h_BDH)
        return self.confidence_head(torch.cat([h_BDH, self.markov_head.markov_w1(previous_BD)], -1))

    def propose(self, drafting: Drafting) -> Proposal:
        """Argmax, or with coins a sample from softmax(logits / T) over the whole vocabulary."""
        base_BDV = drafting.h_BDH @ drafting.head_VH.T
        token_B, state = drafting.anchor_B, self.markov_head.first_state(drafting.h_BDH[:, 0])
        tokens, q = [], []
        for slot in range(base_BDV.shape[1]):
            code, state = self.markov_head.code(token_B, drafting.h_BDH[:, slot], state)
            logits_BV = base_BDV[:, slot] + self.markov_head.markov_w2(code)
            if drafting.coins_BD is None:
                token_B = logits_BV.argmax(-1)
            else:
                q.append((logits_BV.float() / drafting.temperature).softmax(-1))
                token_B = draw(q[-1], drafting.coins_BD[:, slot])
            tokens.append(token_B)
        return Proposal(torch.stack(tokens, 1), torch.stack(q, 1) if q else None)

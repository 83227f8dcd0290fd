"""LiLiCorr's head: a small transformer reads the lattice of K candidates per slot; neighbours are scored by a cosine.

Every candidate of every slot is a node. Nodes see each other in full and each gets two unit vectors, an outgoing and
an incoming one; the score of c' behind c is sigma times their cosine (Eq. 1). The first slot's predecessor is the
anchor, whose vector comes from the context row just before it (the target's state that produced the anchor token).
No log-probability is added to a score: it enters as a feature of the node.

Source: SGLang 0.5.23 ``models/lilicorr.py``; ModelOpt PR 2342. Shapes: B blocks, D slots, K candidates, L = D K nodes,
H drafter width, h head width, d vector width, n attention heads.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from drafters.model.config import DrafterConfig
from drafters.model.lattice import best_path, greedy_walk, sampled_walk
from drafters.model.norm import RMSNorm
from drafters.model.proposal import Drafting, Proposal, over_vocabulary
from sglang_specbench.errors import UserError

_STD = 0.02
_FEATURES = 5
_SCALE = "lilicorr_embedding_scale"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The ``lilicorr_*`` keys of SGLang. Neither eps nor scale (sigma) changes any shape.

    ``lilicorr_embedding_scale`` is of training alone: candidate embeddings enter ``token_proj`` times this factor, and
    the export multiplies ``token_proj.weight`` by it, so that SGLang computes the same function without it. A power of
    two keeps that exact in bf16. About rms(hidden state) / rms(embedding) lets a small target's tokens be seen.
    """

    lilicorr_candidate_topk: int = 8  # candidates of a slot (K): a power of two, at most 16
    lilicorr_hidden_size: int = 1024  # width of the lattice's layers; 0: the drafter's
    lilicorr_num_layers: int = 2  # layers of attention over all candidates of a block
    lilicorr_num_heads: int = 8  # heads of that attention
    lilicorr_mlp_ratio: float = 2.0  # width of a layer's MLP, over the layer's
    lilicorr_factor_dim: int = 1024  # width of the outgoing and incoming vectors (d_e)
    lilicorr_vector_eps: float = 1e-4  # least norm of such a vector
    lilicorr_logit_scale: float = 8.0  # factor of the cosine (sigma)
    lilicorr_embedding_scale: float = 1.0  # of training: factor of the candidates' embeddings; the export folds it in

    widths: ClassVar[tuple[str, ...]] = (
        "lilicorr_hidden_size",
        "lilicorr_factor_dim",
    )  # see `training.scaled_recipes`
    architecture: ClassVar[str] = "LiLiCorrDraftModel"
    counts_anchor: ClassVar[bool] = True
    anchor_predicts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        scale = self.lilicorr_embedding_scale
        if not (scale > 0 and math.isfinite(scale) and math.frexp(scale)[0] == 0.5):
            raise ValueError(f"lilicorr_embedding_scale {scale:g} is no power of two: write 1, 2, 4, 8, 16, ...")

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> "Settings":
        nested = {_SCALE: 1.0, **config["dflash_config"]}
        return cls(**{field.name: nested[field.name] for field in fields(cls)})

    def to_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Keys of the top level and of ``dflash_config``."""
        nested = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.lilicorr_embedding_scale == 1:  # SGLang knows no such key
            del nested[_SCALE]
        return {}, nested


class TwoLayer(nn.Module):
    def __init__(self, into: int, inner: int, out: int) -> None:
        super().__init__()
        self.up_proj, self.down_proj = nn.Linear(into, inner), nn.Linear(inner, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.up_proj(x)))


class LatticeLayer(nn.Module):
    """One pre-norm transformer layer over all nodes, with an additive bias of the attention scores."""

    def __init__(self, width: int, heads: int, inner: int, eps: float) -> None:
        super().__init__()
        self.attn_norm, self.mlp_norm = RMSNorm(width, eps), RMSNorm(width, eps)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = TwoLayer(width, inner, width)

    def forward(self, x_BLh: Tensor, bias_nLL: Tensor) -> Tensor:
        x_BLh = x_BLh + self._attention(self.attn_norm(x_BLh), bias_nLL)
        return x_BLh + self.mlp(self.mlp_norm(x_BLh))

    def _attention(self, x_BLh: Tensor, bias_nLL: Tensor) -> Tensor:
        """What ``self.attn`` computes, but without a copy of the bias for every block."""
        qkv = F.linear(x_BLh, self.attn.in_proj_weight, self.attn.in_proj_bias)
        q, k, v = (part.unflatten(-1, (self.attn.num_heads, -1)).transpose(1, 2) for part in qkv.chunk(3, -1))
        # written out: 120 nodes are few, and SDPA takes its slowest path for a bias that wants a gradient
        out_BnLe = (q * q.shape[-1] ** -0.5 @ k.transpose(-1, -2) + bias_nLL.to(q.dtype)).softmax(-1) @ v
        return self.attn.out_proj(out_BnLe.transpose(1, 2).flatten(2))


class Correlator(nn.Module):
    """The lattice scorer; its parameters are the ``lilicorr.*`` tensors."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        settings, width, slots, eps = config.head, config.hidden_size, config.drafted, config.rms_norm_eps
        h, d = settings.lilicorr_hidden_size or width, settings.lilicorr_factor_dim
        self.settings, self.slots = settings, slots
        if h != width:
            self.token_proj = nn.Linear(width, h)
        elif settings.lilicorr_embedding_scale != 1:
            raise UserError(
                "lilicorr_embedding_scale: no token_proj to hold it",
                "set lilicorr_hidden_size unlike hidden_size",
            )
        self.pass_hidden_proj, self.context_proj = nn.Linear(width, h), nn.Linear(width, h)
        self.feature_norm = nn.LayerNorm(_FEATURES)
        self.feature_mlp = TwoLayer(_FEATURES, h, h)
        self.slot_embedding = nn.Parameter(torch.zeros(1, 1, slots, 1, h))
        self.rank_embedding = nn.Parameter(torch.zeros(1, 1, 1, settings.lilicorr_candidate_topk, h))
        self.relative_slot_bias = nn.Parameter(torch.zeros(settings.lilicorr_num_heads, 2 * slots + 1))
        self.same_slot_bias = nn.Parameter(torch.zeros(settings.lilicorr_num_heads))
        inner = int(h * settings.lilicorr_mlp_ratio)
        self.layers = nn.ModuleList(
            LatticeLayer(h, settings.lilicorr_num_heads, inner, eps) for _ in range(settings.lilicorr_num_layers)
        )
        self.output_norm, self.anchor_norm = RMSNorm(h, eps), RMSNorm(h, eps)
        self.factor_input_proj = nn.Linear(3 * h, h)
        self.out_head, self.in_head, self.anchor_out_head = nn.Linear(h, d), nn.Linear(h, d), nn.Linear(h, d)
        for module in self.modules():  # the factor heads too: zeros on both sides of a product have no gradient
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=_STD)
                nn.init.zeros_(module.bias)

    def forward(
        self, embedded_BDKH: Tensor, logp_BDK: Tensor, h_BDH: Tensor, before_BH: Tensor, has_before_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores in fp32: of the first slot's candidates [B, K], and of neighbours [B, D - 1, K, K].

        ``logp_BDK`` are log-probabilities over the whole vocabulary, candidates in descending order.
        """
        x_BLh = self._nodes(embedded_BDKH, logp_BDK, h_BDH).flatten(1, 2)
        bias_nLL = self._bias(logp_BDK.shape[1])
        for layer in self.layers:
            x_BLh = layer(x_BLh, bias_nLL)
        x_BDKh = self.output_norm(x_BLh).unflatten(1, logp_BDK.shape[1:])
        anchor_Bh = self.anchor_norm(self.context_proj(before_BH) * has_before_B[:, None].to(before_BH.dtype))
        return self._scores(x_BDKh, anchor_Bh)

    def _nodes(self, embedded_BDKH: Tensor, logp_BDK: Tensor, h_BDH: Tensor) -> Tensor:
        x_BDKh = embedded_BDKH
        if hasattr(self, "token_proj"):
            x_BDKh = self.token_proj(self.settings.lilicorr_embedding_scale * embedded_BDKH)
        x_BDKh = x_BDKh + self.pass_hidden_proj(h_BDH)[:, :, None]
        features_BDK5 = node_features(logp_BDK).to(x_BDKh.dtype)
        x_BDKh = x_BDKh + self.feature_mlp(self.feature_norm(features_BDK5))
        return x_BDKh + self.slot_embedding[0, :, : logp_BDK.shape[1]] + self.rank_embedding[0]

    def _bias(self, slots: int) -> Tensor:
        """Attention bias [n, L, L]: one number for each distance of slots, and one more within a slot."""
        slot_L = torch.arange(slots, device=self.same_slot_bias.device).repeat_interleave(
            self.settings.lilicorr_candidate_topk
        )
        distance_LL = slot_L[:, None] - slot_L
        same_nLL = (distance_LL == 0) * self.same_slot_bias[:, None, None]
        return self.relative_slot_bias[:, distance_LL + self.slots] + same_nLL

    def _scores(self, x_BDKh: Tensor, anchor_Bh: Tensor) -> tuple[Tensor, Tensor]:
        anchor_BDKh = anchor_Bh[:, None, None].expand_as(x_BDKh)
        u_BDKh = F.silu(self.factor_input_proj(torch.cat([x_BDKh, anchor_BDKh, x_BDKh * anchor_BDKh], -1)))
        out_BDKd, in_BDKd = self._unit(self.out_head(u_BDKh)), self._unit(self.in_head(u_BDKh))
        start_BK = (in_BDKd[:, 0] @ self._unit(self.anchor_out_head(anchor_Bh))[..., None])[..., 0]
        pair_BSKK = out_BDKd[:, :-1] @ in_BDKd[:, 1:].mT
        return (
            self.settings.lilicorr_logit_scale * start_BK.float(),
            self.settings.lilicorr_logit_scale * pair_BSKK.float(),
        )

    def _unit(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1, eps=self.settings.lilicorr_vector_eps)


def served(config: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The same function in the keys that SGLang knows: the embedding scale moves into ``token_proj.weight``."""
    nested = dict(config["dflash_config"])
    scale, name = nested.pop(_SCALE, 1.0), "lilicorr.token_proj.weight"
    moved = {name: scale * tensors[name]} if scale != 1 else {}
    return {**config, "dflash_config": nested}, {**tensors, **moved}


def node_features(logp_BDK: Tensor) -> Tensor:
    """[log p, p, log p - best log p, rank in [0, 1], is first]: [B, D, K, 5], in fp32."""
    logp_BDK = logp_BDK.float()
    count = logp_BDK.shape[-1]
    rank_K = torch.arange(count, device=logp_BDK.device)
    place = (rank_K / max(count - 1, 1)).expand_as(logp_BDK)
    first = (rank_K == 0).float().expand_as(logp_BDK)
    return torch.stack([logp_BDK, logp_BDK.exp(), logp_BDK - logp_BDK.amax(-1, keepdim=True), place, first], -1)


class Head(nn.Module):
    BRANCHES: ClassVar[dict[str, str]] = {
        "token": "lilicorr.token_proj",
        "hidden": "lilicorr.pass_hidden_proj",
        "features": "lilicorr.feature_mlp",
        "anchor": "lilicorr.context_proj",
    }

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.candidates = config.head.lilicorr_candidate_topk
        self.lilicorr = Correlator(config)

    def propose(self, drafting: Drafting) -> Proposal:
        """Greedy walk or exact path (point masses), or with coins a sample over the K candidates."""
        logits_BDV = drafting.h_BDH @ drafting.head_VH.T
        best_BDK, ids_BDK = logits_BDV.topk(self.candidates, -1)
        logp_BDK = best_BDK.float() - logits_BDV.float().logsumexp(-1, keepdim=True)
        embedded_BDKH = drafting.embedding_VH[ids_BDK]
        start_BK, pair_BSPC = self.lilicorr(
            embedded_BDKH, logp_BDK, drafting.h_BDH, drafting.before_BH, drafting.has_before_B
        )
        if drafting.coins_BD is None:
            path_BD = (best_path if drafting.exact_path else greedy_walk)(start_BK, pair_BSPC)
            return Proposal(ids_BDK.gather(-1, path_BD[..., None])[..., 0])
        path_BD, q_BDK = sampled_walk(start_BK, pair_BSPC, drafting.temperature, drafting.coins_BD)
        tokens_BD = ids_BDK.gather(-1, path_BD[..., None])[..., 0]
        return Proposal(tokens_BD, over_vocabulary(q_BDK, ids_BDK, logits_BDV.shape[-1]))

"""The backbone that all five drafters share (DFlash, arXiv 2602.06036): a few Qwen3 layers over one draft block.

Knows layers; not heads, tokens or losses. The target's hidden states become one context that every layer projects with
its own keys and values (no input norm on it, and no layer changes it). The rows of a block are the embedded anchor
and mask tokens. Names are those of SGLang 0.5.23 (``models/dflash.py``), where q/k/v and gate/up arrive unpacked.

Shapes: B sequences, S context positions, N blocks, R rows, H width, Q query heads, K key heads, E head width.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from drafters.model.attention import attend
from drafters.model.blocks import Blocks
from drafters.model.config import DrafterConfig
from drafters.model.conv import GroupedConv
from drafters.model.norm import RMSNorm

_STD = 0.02  # of initial weights, as in Qwen3


class Backbone(nn.Module):
    """``context`` once per forward, then ``forward`` for the blocks."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.turn = partial(turn, size=config.head_dim, theta=config.rope_theta)
        self.fc = _linear(len(config.target_layer_ids) * width, width)
        self.hidden_norm = RMSNorm(width, config.rms_norm_eps)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(width, config.rms_norm_eps)

    def context(self, features_BSF: Tensor) -> Tensor:
        return self.hidden_norm(self.fc(features_BSF))

    def forward(self, x_BNRH: Tensor, context_BSH: Tensor, blocks: Blocks) -> Tensor:
        """Final hidden state of every row: [B, N, R, H]."""
        places = torch.arange(context_BSH.shape[1], device=context_BSH.device)
        turns = self.turn(places), self.turn(blocks.position_BNR)
        for layer in self.layers:
            x_BNRH = layer(x_BNRH, context_BSH, blocks, turns)
        return self.norm(x_BNRH)


class Layer(nn.Module):
    """Attention and MLP, each between the two halves of a convolution when the config has one."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.input_layernorm = RMSNorm(width, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(width, config.rms_norm_eps)
        self.mlp = MLP(width, inner)
        self.convolves = config.conv_kernel_size > 0
        if self.convolves:
            self.attention_conv = GroupedConv(width, config.conv_kernel_size, config.conv_group_size)
            self.mlp_conv = GroupedConv(width, config.conv_kernel_size, config.conv_group_size)

    def forward(self, x_BNRH: Tensor, context_BSH: Tensor, blocks: Blocks, turns: "Turns") -> Tensor:
        u_BNRH = self.input_layernorm(x_BNRH)
        if not self.convolves:
            x_BNRH = x_BNRH + self.self_attn(u_BNRH, context_BSH, blocks, turns)
            return x_BNRH + self.mlp(self.post_attention_layernorm(x_BNRH))
        u_BNRH, after = self.attention_conv.prepare(u_BNRH)
        x_BNRH = x_BNRH + self.attention_conv.finish(self.self_attn(u_BNRH, context_BSH, blocks, turns), after)
        u_BNRH, after = self.mlp_conv.prepare(self.post_attention_layernorm(x_BNRH))
        return x_BNRH + self.mlp_conv.finish(self.mlp(u_BNRH), after)


class Attention(nn.Module):
    """Keys and values of context and block come from the same projections; q and k are normalised per head."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        width, size = config.hidden_size, config.head_dim
        queries, keys = config.num_attention_heads * size, config.num_key_value_heads * size
        self.size = size
        self.q_proj, self.o_proj = _linear(width, queries), _linear(queries, width)
        self.k_proj, self.v_proj = _linear(width, keys), _linear(width, keys)
        self.q_norm, self.k_norm = RMSNorm(size, config.rms_norm_eps), RMSNorm(size, config.rms_norm_eps)

    def forward(self, x_BNRH: Tensor, context_BSH: Tensor, blocks: Blocks, turns: "Turns") -> Tensor:
        in_context, in_block = turns
        q_BNRQE = rotate(self.q_norm(self.q_proj(x_BNRH).unflatten(-1, (-1, self.size))), in_block)
        out = attend(q_BNRQE, self._keys_values(context_BSH, in_context), self._keys_values(x_BNRH, in_block), blocks)
        return self.o_proj(out.flatten(-2))

    def _keys_values(self, x: Tensor, turn: "Turn") -> tuple[Tensor, Tensor]:
        keys = self.k_norm(self.k_proj(x).unflatten(-1, (-1, self.size)))
        return rotate(keys, turn), self.v_proj(x).unflatten(-1, (-1, self.size))


class MLP(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = _linear(width, inner), _linear(width, inner)
        self.down_proj = _linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


Turn = tuple[Tensor, Tensor]  # cosines and sines [..., 1, E]
Turns = tuple[Turn, Turn]  # of context and block positions


def turn(position: Tensor, size: int, theta: float) -> Turn:
    """Rotary angles of ``position``, in fp32 whatever the model's type (the two halves of a head turn together)."""
    exponent = torch.arange(0, size, 2, device=position.device).float() / size
    angle = position[..., None].float() * theta**-exponent
    angle = torch.cat([angle, angle], -1)[..., None, :]
    return angle.cos(), angle.sin()


def rotate(x: Tensor, turn: Turn) -> Tensor:
    """Rotary embedding of x [..., heads, E] at the positions of ``turn``."""
    cos, sin = turn
    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat([-second, first], -1) * sin).to(x.dtype)


def _linear(into: int, out: int) -> nn.Linear:
    layer = nn.Linear(into, out, bias=False)
    nn.init.normal_(layer.weight, std=_STD)
    return layer

"""Small torch equivalents for a CPU: stream bookkeeping, input embeddings, top-k, rotary embedding, Domino's gate.

Each stands for one function of SGLang 0.5.23 that only runs on a GPU; ``table.py`` says which and why.
Shapes: N tokens, H heads, D head size, V vocabulary, K candidates.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch


def without_streams(original: Callable[..., None]) -> Callable[..., None]:
    """``Tensor.record_stream`` that does nothing for CPU tensors, which have no stream."""

    def record_stream(self: torch.Tensor, stream: Any) -> None:
        if self.device.type != "cpu":
            original(self, stream)

    return record_stream


def keeping_dtype(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """``ModelRunner._extend_forward_kwargs`` without its cast of the embeddings to bfloat16."""

    @functools.wraps(original)
    def extend_forward_kwargs(self: Any, forward_batch: Any, pp_proxy_tensors: Any) -> dict[str, Any]:
        kwargs = original(self, forward_batch, pp_proxy_tensors)
        if forward_batch.input_embeds is not None and forward_batch.replace_embeds is None:
            kwargs["input_embeds"] = forward_batch.input_embeds.to(self.dtype)
        return kwargs

    return extend_forward_kwargs


def torch_topk(scores_NV: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Largest ``k`` scores of each row, descending, and where they are."""
    values_NK, ids_NK = torch.topk(scores_NV, k, dim=-1)
    return values_NK, ids_NK


def qk_norm_rope_(
    qkv: torch.Tensor,
    positions: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    num_q_heads: int,
    num_k_heads: int,
    head_dim: int,
    eps: float,
) -> None:
    """RMS norm and neox rotation of the q and k columns of ``qkv`` in place, rounded where the kernel rounds."""
    heads = num_q_heads + num_k_heads
    qk_NHD = qkv[:, : heads * head_dim].view(-1, heads, head_dim)
    x_NHD = qk_NHD.float()
    x_NHD = x_NHD * torch.rsqrt(x_NHD.pow(2).mean(-1, keepdim=True) + eps)
    weight_HD = torch.cat([q_weight.expand(num_q_heads, -1), k_weight.expand(num_k_heads, -1)]).float()
    left, right = (x_NHD * weight_HD).to(qkv.dtype).float().chunk(2, dim=-1)
    cos, sin = cos_sin_cache[positions].float()[:, None].chunk(2, dim=-1)
    qk_NHD.copy_(torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1).to(qkv.dtype))


def no_fused_write(self: Any, pool: Any) -> None:
    """``_fused_kv_write_bundle`` where there is no kernel to bundle for: float32 drafts get the same answer."""


def domino_gate(**kwargs: Any) -> None:
    """``validate_domino_runtime`` for one CPU: of its checks only the vocabularies can be wrong here."""
    if kwargs["target_vocab_size"] != kwargs["draft_vocab_size"]:
        raise ValueError("Domino needs one vocabulary for target and draft")

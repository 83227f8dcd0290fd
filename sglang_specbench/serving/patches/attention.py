"""Verify attention on a CPU: SGLang's ``torch_native`` backend knows prefill and decode, not TARGET_VERIFY.

A verify step brings n query tokens per request whose keys are the request's prefix and the n tokens themselves.
Target: causal. Block drafters: every slot sees the whole block (``AttentionType.ENCODER_ONLY``). Semantics copied from
``layers/attention/flashattention_backend.py`` (causal flag, inclusive window) and from
``torch_native_backend.forward_extend`` (cache write), SGLang 0.5.23.

Shapes: N query tokens of all requests, H query heads, G key heads, D head size, n and p tokens and prefix of a request.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention


def with_verify(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """``TorchNativeAttnBackend.forward_extend`` that also serves verify steps."""

    @functools.wraps(original)
    def forward_extend(
        self: Any, q: Any, k: Any, v: Any, layer: Any, forward_batch: Any, save_kv_cache: bool = True
    ) -> torch.Tensor:
        if not forward_batch.forward_mode.is_target_verify():
            return original(self, q, k, v, layer, forward_batch, save_kv_cache)
        if save_kv_cache and k is not None:
            _write_cache(self, layer, forward_batch, k, v)
        return _verify(self, q, layer, forward_batch)

    return forward_extend


def _write_cache(backend: Any, layer: Any, forward_batch: Any, k: torch.Tensor, v: torch.Tensor) -> None:
    from sglang.srt.mem_cache.memory_pool import KVWriteLoc

    where = KVWriteLoc(forward_batch.out_cache_loc, backend.swa_out_cache_loc)
    backend.token_to_kv_pool.set_kv_buffer(layer, where, k, v)


def _verify(backend: Any, q: torch.Tensor, layer: Any, forward_batch: Any) -> torch.Tensor:
    from sglang.srt.layers.radix_attention import AttentionType

    q_NHD = q.view(-1, layer.tp_q_head_num, layer.qk_head_dim)
    k_SGD = backend.token_to_kv_pool.get_key_buffer(layer.layer_id)
    v_SGD = backend.token_to_kv_pool.get_value_buffer(layer.layer_id)
    out_NHD = q.new_empty(q_NHD.shape[0], layer.tp_q_head_num, layer.v_head_dim)
    window = -1 if layer.sliding_window_size is None else layer.sliding_window_size
    causal = layer.attn_type != AttentionType.ENCODER_ONLY
    start = 0
    for pool, p, n in zip(
        forward_batch.req_pool_indices.tolist(),
        forward_batch.seq_lens.tolist(),
        query_lengths(forward_batch, q_NHD.shape[0]),
        strict=True,
    ):
        slots = backend.req_to_token_pool.req_to_token[pool, : p + n].long()
        out_NHD[start : start + n] = block_attention(
            q_NHD[start : start + n],
            k_SGD[slots].to(q.dtype),
            v_SGD[slots].to(q.dtype),
            verify_mask(p, n, causal=causal, window=window),
            layer.scaling,
        )
        start += n
    return out_NHD.view(q.shape[0], -1)


def query_lengths(forward_batch: Any, tokens: int) -> list[int]:
    """Query tokens of each request: the ragged layout of DSpark's compact mode, or equal blocks."""
    layout = getattr(forward_batch.spec_info, "ragged_verify_layout", None)
    if layout is not None:
        return [int(n) for n in layout.verify_lens.tolist()]
    return [tokens // forward_batch.batch_size] * forward_batch.batch_size


def verify_mask(p: int, n: int, *, causal: bool, window: int) -> torch.Tensor:
    """Bool [n, p + n], True where query i (at position p + i) sees key j; ``window`` < 0 is none, else inclusive."""
    query, key = torch.arange(p, p + n)[:, None], torch.arange(p + n)[None]
    mask = torch.ones(n, p + n, dtype=torch.bool)
    if causal:
        mask &= key <= query
    if window >= 0:
        mask &= key >= query - window
    return mask


def block_attention(
    q_nHD: torch.Tensor, k_tGD: torch.Tensor, v_tGD: torch.Tensor, mask_nt: torch.Tensor, scale: float
) -> torch.Tensor:
    """One request: queries over prefix and block under ``mask_nt``; grouped heads when G < H."""
    out_HnD = scaled_dot_product_attention(
        q_nHD.transpose(0, 1)[None],
        k_tGD.transpose(0, 1)[None],
        v_tGD.transpose(0, 1)[None],
        attn_mask=mask_nt,
        scale=scale,
        enable_gqa=q_nHD.shape[1] != k_tGD.shape[1],
    )[0]
    return out_HnD.transpose(0, 1)

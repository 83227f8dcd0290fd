"""The drafter as SGLang builds it from our config.json and tensors, with attention over a given context.

Everything but the attention kernel is SGLang's: config parsing, modules, weight loading, projections, norms, rotary
embedding, convolution. The kernel needs a server's cache; here it is plain softmax over [context; block].
"""

from typing import Any

import torch
from torch import Tensor, nn

from drafters.model.drafter import Drafter


class BlockAttention(nn.Module):
    """In place of RadixAttention: keys and values of the context are set beforehand, a block is 16 rows."""

    def __init__(self, heads: int, scaling: float) -> None:
        super().__init__()
        self.heads, self.scaling = heads, scaling
        self.context: tuple[Tensor, Tensor] | None = None

    def forward(self, q: Tensor, k: Tensor, v: Tensor, _batch: Any) -> Tensor:
        assert self.context is not None
        keys, values = torch.cat([self.context[0], k]), torch.cat([self.context[1], v])
        size = q.shape[-1] // self.heads
        group = self.heads // (keys.shape[-1] // size)
        queries = q.unflatten(-1, (self.heads, size)).transpose(0, 1)
        keys, values = (x.unflatten(-1, (-1, size)).repeat_interleave(group, 1).transpose(0, 1) for x in (keys, values))
        weights = (queries @ keys.mT * self.scaling).softmax(-1)
        return (weights @ values).transpose(0, 1).flatten(1)


def served_model(drafter: Drafter) -> Any:
    """SGLang's model of ``drafter``'s architecture with its weights."""
    from sglang.srt.models import dflash, dspark, lilicorr
    from transformers import Qwen3Config

    values = drafter.config.to_json()
    config = Qwen3Config(**values)
    name = values["architectures"][0]
    cls = next(getattr(module, name) for module in (dflash, lilicorr, dspark) if hasattr(module, name))
    model = cls(config)
    model.load_weights(iter(drafter.state_dict().items()))
    for layer in model.layers:
        attention = layer.self_attn
        attention.attn = BlockAttention(attention.num_heads, attention.scaling)
    return model.eval()


@torch.no_grad()
def served_hidden(model: Any, features_SF: Tensor, embedded_RH: Tensor) -> tuple[Tensor, Tensor]:
    """Final hidden states of one block behind a context, and the projected context, as the worker computes them."""
    context_SH = model.project_target_hidden(features_SF)
    places = torch.arange(len(context_SH))
    for layer in model.layers:
        attention = layer.self_attn
        keys, values = attention.kv_proj_only(model.prepare_context_hidden_for_kv(layer, context_SH))
        keys = attention.apply_k_rope(places, attention.apply_k_norm(keys))
        attention.attn.context = (keys, values)
    positions = len(context_SH) + torch.arange(len(embedded_RH))
    output = model(None, positions, None, input_embeds=embedded_RH)
    return output.hidden_states, context_SH

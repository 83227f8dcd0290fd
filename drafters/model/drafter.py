"""A drafter: the shared backbone and one arm's head, under the tensor names that SGLang loads.

Knows how the two are put together; attention, heads and losses have their own files. ``state_dict()`` is the
checkpoint: SGLang's names have neither ``backbone.`` nor ``head.`` in front, so both are taken off and put back.

Shapes: see `blocks`.
"""

from typing import Any

import torch
from torch import Tensor, nn

from drafters.model.backbone import Backbone
from drafters.model.blocks import Blocks, TrainingBatch
from drafters.model.config import DrafterConfig
from drafters.model.registry import package


class Drafter(nn.Module):
    """Made by `build`. ``forward`` is the training pass; serving uses ``context``, ``backbone`` and ``head``."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = Backbone(config)
        self.head = package(config.arm).Head(config)
        self._in_backbone = {name.split(".")[0] for name in self.backbone.state_dict()}
        self.register_state_dict_post_hook(_take_off_prefixes)
        self.register_load_state_dict_pre_hook(_put_back_prefixes)

    def context(self, features_BSF: Tensor) -> Tensor:
        """Target hidden states to the context that every layer attends to: [B, S, F] -> [B, S, H]."""
        return self.backbone.context(features_BSF)

    def forward(self, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Hidden states of the kept blocks' predicting rows, [M, D, H] (D: first to last row), and the context."""
        context_BSH = self.context(batch.features_BSF)
        blocks = Blocks(batch.anchor_BN, self.config.rows, batch.tokens_BS.shape[1])
        inputs_BNRH = batch.inputs(self.config.mask_token_id, self.config.rows)
        h_BNRH = self.backbone(inputs_BNRH, context_BSH, blocks)
        return h_BNRH[batch.keep_BN][:, self.config.first_row :], context_BSH


def build(config: DrafterConfig) -> Drafter:
    """A drafter with its arm's documented initial weights, drawn from torch's default generator."""
    return Drafter(config)


def _take_off_prefixes(_drafter: nn.Module, state: dict[str, Any], prefix: str, _metadata: Any) -> None:
    for name in [name for name in state if name.startswith(prefix)]:
        part = name.removeprefix(prefix)
        if part.startswith(("backbone.", "head.")):
            state[prefix + part.split(".", 1)[1]] = state.pop(name)


def _put_back_prefixes(drafter: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for name in [name for name in state if name.startswith(prefix)]:
        part = name.removeprefix(prefix)
        owner = "backbone" if part.split(".")[0] in drafter._in_backbone else "head"
        state[f"{prefix}{owner}.{part}"] = state.pop(name)


def load(config: dict[str, Any], tensors: dict[str, Tensor], dtype: torch.dtype = torch.float32) -> Drafter:
    """The drafter of a checkpoint (its parsed config.json and tensors), for inference in ``dtype``.

    Raises ``RuntimeError`` naming every missing or unexpected tensor.
    """
    drafter = Drafter(DrafterConfig.from_json(config))
    drafter.load_state_dict(tensors)
    return drafter.to(dtype).eval().requires_grad_(False)

"""Toy's drafter as SGLang 0.5.23 serves it: DFlash's own model, whose hidden states are corrected before the head."""

from typing import Any

import torch
from sglang.srt.models.dflash import DFlashDraftModel
from torch import nn


class ToyDraftModel(DFlashDraftModel):
    """Named in the checkpoint's config.json; `DFlashDraftModel.load_weights` finds the new parameters by name."""

    def __init__(self, config: Any, quant_config: Any = None, prefix: str = "") -> None:
        super().__init__(config=config, quant_config=quant_config, prefix=prefix)
        hidden, rank = int(config.hidden_size), int(config.dflash_config["toy_rank"])
        self.toy_down = nn.Linear(hidden, rank, bias=False)
        self.toy_up = nn.Linear(rank, hidden, bias=False)

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = super().forward(*args, **kwargs)
        h = output.hidden_states
        output.hidden_states = h + self.toy_up(self.toy_down(h))
        return output


EntryClass = ToyDraftModel

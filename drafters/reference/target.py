"""The frozen target: any Hugging Face causal LM, its embedding and head, and the hidden states that drafters read.

Knows where transformers keeps them. A layer id i means the residual stream after 0-based decoder layer i, before the
final norm: ``hidden_states[i + 1]`` (index 0 is the embedding's output).

Shapes: B sequences, S positions, F = len(layer ids) * H, H width, V vocabulary.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor


class Target:
    """``model`` is put into evaluation mode and its gradients are switched off."""

    def __init__(self, model: Any) -> None:
        self.model = model.eval().requires_grad_(False)
        self.config: dict[str, Any] = model.config.to_dict()
        self.embedding_VH: Tensor = model.get_input_embeddings().weight
        self.head_VH: Tensor = model.get_output_embeddings().weight

    @classmethod
    def load(cls, folder: Path, dtype: torch.dtype = torch.float32, device: str = "cpu") -> "Target":
        """The model in ``folder`` (nothing is downloaded)."""
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
        return cls(model.to(device))

    @torch.no_grad()
    def states(self, tokens_BS: Tensor, layer_ids: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """(features [B, S, F], final hidden state after the last norm [B, S, H]) of right-padded sequences.

        Padding needs no mask: attention is causal, so no real position sees it.
        """
        output = self.model.base_model(input_ids=tokens_BS, output_hidden_states=True, use_cache=False)
        return features(output.hidden_states, layer_ids), output.last_hidden_state


def features(hidden_states: tuple[Tensor, ...], layer_ids: tuple[int, ...]) -> Tensor:
    """Hidden states after the layers of ``layer_ids``, concatenated in that order."""
    return torch.cat([hidden_states[index + 1] for index in layer_ids], -1)


class Cursor:
    """The target reading one sequence with its key-value cache. Rows are counted from 0 over the whole sequence."""

    def __init__(self, target: Target, layer_ids: tuple[int, ...]) -> None:
        from transformers import DynamicCache

        self.target, self.layer_ids = target, layer_ids
        self.cache = DynamicCache(config=target.model.config)

    @torch.no_grad()
    def read(self, tokens_S: Tensor) -> tuple[Tensor, Tensor]:
        """Append tokens: logits of the token after each [S, V], and features [S, F]."""
        output = self.target.model(
            input_ids=tokens_S[None], past_key_values=self.cache, use_cache=True, output_hidden_states=True
        )
        return output.logits[0], features(output.hidden_states, self.layer_ids)[0]

    def rewind(self, rows: int) -> None:
        """Forget all but the first ``rows`` tokens."""
        if surplus := self.cache.get_seq_length() - rows:
            self.cache.crop(-surplus)

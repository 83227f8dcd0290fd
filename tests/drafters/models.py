"""A tiny random target and drafters for it. Weights are large enough for every term to matter; numbers mean nothing."""

from typing import Any

import torch
from torch import Tensor

from drafters.model.blocks import TrainingBatch
from drafters.model.config import DrafterConfig
from drafters.model.drafter import Drafter, build
from drafters.reference.target import Target

V, H, MASK = 96, 32, 7
TARGET = {
    "vocab_size": V,
    "hidden_size": H,
    "intermediate_size": 48,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e4,
}
CONV = {"conv_kernel_size": 2, "conv_group_size": 8}
LILICORR = {
    "lilicorr_candidate_topk": 4,
    "lilicorr_hidden_size": 16,
    "lilicorr_num_layers": 2,
    "lilicorr_num_heads": 2,
    "lilicorr_factor_dim": 12,
}
MODELS: dict[str, dict[str, Any]] = {
    "dflash": {},
    "dflash2": {"selector_rank": 6, "selector_top_k": 4, **CONV},
    "dflash2-noconv": {"selector_rank": 6, "selector_top_k": 4},
    "domino": {"gru_hidden_dim": 12, "emb_dim": 10},
    "dspark": {"markov_rank": 6},
    "lilicorr": LILICORR,
    "lilicorr-conv": {**LILICORR, **CONV},
}


def tiny_config(arm: str, **model: Any) -> DrafterConfig:
    settings = {"num_hidden_layers": 2, **MODELS[arm], **model}
    return DrafterConfig.from_target(TARGET, arm, mask_token_id=MASK, **settings)


def tiny_drafter(arm: str, seed: int = 0, **model: Any) -> Drafter:
    """All parameters random, those too that start at zero or one."""
    drafter = build(tiny_config(arm, **model))
    randomise(drafter, seed)
    return drafter.eval()


def randomise(module: torch.nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise * 0.3 + (1 if parameter.dim() == 1 else 0))


def tiny_target(seed: int = 3, tied_to: int = 2) -> Target:
    """A head with few favoured tokens, so that drafts of random weights are sometimes accepted."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(Qwen3Config(**TARGET, tie_word_embeddings=False)).float()
    with torch.no_grad():
        model.model.embed_tokens.weight.normal_(std=0.5)
        model.lm_head.weight.normal_(std=0.02)
        model.lm_head.weight[:tied_to].normal_(std=1.0)
    return Target(model)


def tiny_batch(features: int, seed: int = 0, **changes: Any) -> TrainingBatch:
    """Two sequences of unequal length, a masked gap, blocks that run out of the sequence, one padded block."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    loss_BS = torch.zeros(2, 48, dtype=torch.bool)
    loss_BS[0, 5:46] = True
    loss_BS[0, 30] = False  # a gap
    loss_BS[1, 3:40] = True
    values: dict[str, Any] = {
        "tokens_BS": torch.randint(0, V, (2, 48), generator=generator),
        "loss_BS": loss_BS,
        "anchor_BN": torch.tensor([[5, 12, 25, 43], [0, 3, 20, 0]]),
        "keep_BN": torch.tensor([[True, True, True, True], [True, True, True, False]]),
        "features_BSF": normal(2, 48, features * H),
        "final_BSH": normal(2, 48, H),
        "embedding_VH": normal(V, H),
        "head_VH": normal(V, H) * 0.3,
    }
    return TrainingBatch(**{**values, **changes})

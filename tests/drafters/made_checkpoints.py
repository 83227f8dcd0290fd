"""Small drafter checkpoints for tests: a config of each arm, and random tensors of the shapes it implies."""

import json

import torch
from safetensors.torch import save_file

from drafters.model.tensor_shapes import expected

TARGET = {
    "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 6, "max_position_embeddings": 4096, "eos_token_id": 2,
}  # fmt: skip
BACKBONE = {
    "architectures": ["DFlashDraftModel"], "model_type": "qwen3", "dtype": "bfloat16", "hidden_size": 16,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
    "intermediate_size": 24, "hidden_act": "silu", "rms_norm_eps": 1e-6, "vocab_size": 64, "attention_bias": False,
    "max_position_embeddings": 4096, "rope_theta": 1000000.0, "tie_word_embeddings": False, "is_causal": False,
    "layer_types": ["full_attention", "full_attention"], "block_size": 16, "num_target_layers": 6,
}  # fmt: skip
SHARED = {"mask_token_id": 3, "target_layer_ids": [1, 2, 3]}
CONV = {"conv_kernel_size": 2, "conv_group_size": 4}
LILICORR = {
    "lilicorr_candidate_topk": 8, "lilicorr_hidden_size": 12, "lilicorr_num_layers": 2, "lilicorr_num_heads": 2,
    "lilicorr_mlp_ratio": 2.0, "lilicorr_factor_dim": 10, "lilicorr_vector_eps": 1e-4, "lilicorr_logit_scale": 8.0,
}  # fmt: skip
DOMINO = {
    "projector_type": "domino", "shift_label": True, "pure_draft_prefix_len": 1, "gru_hidden_dim": 12, "emb_dim": 6,
}  # fmt: skip
DSPARK = {
    "architectures": ["Qwen3DSparkModel"], "block_size": 15, "markov_rank": 4, "markov_head_type": "vanilla",
    "enable_confidence_head": True, "confidence_head_with_markov": True, "sample_from_anchor": True,
}  # fmt: skip
DFLASH2 = {**CONV, "selector_rank": 4, "selector_top_k": 8}


def configs():
    """A correct config.json for each arm, by arm."""
    arms = {
        "dflash": ({}, {}),
        "dflash2": ({"architectures": ["DFlash2DraftModel"]}, DFLASH2),
        "domino": ({}, DOMINO),
        "dspark": (DSPARK, {}),
        "lilicorr": ({"architectures": ["LiLiCorrDraftModel"]}, LILICORR),
        "lilicorr-conv": ({"architectures": ["LiLiCorrDraftModel"]}, {**LILICORR, **CONV}),
    }
    return {arm: {**BACKBONE, **top, "dflash_config": {**SHARED, **nested}} for arm, (top, nested) in arms.items()}


def tensors(config):
    """Random bf16 tensors under the names and shapes that ``config`` implies."""
    generator = torch.Generator().manual_seed(1)
    return {
        name: torch.randn(shape, generator=generator).to(torch.bfloat16) for name, shape in expected(config).items()
    }


def write(folder, config, values):
    """A checkpoint folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(values, folder / "model.safetensors")
    return folder

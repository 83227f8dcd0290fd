"""Tiny random checkpoints of every drafter, made so that drafts are sometimes right.

The target's head is biased to two tokens, so that a drafter which knows nothing still agrees with it now and then:
both the accept and the reject path run. Block 16 as everywhere (DSpark: 15 drafts).
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

V, H, FFN, LAYERS, HEADS, KV, D, BLOCK, DRAFT_LAYERS = 512, 128, 256, 4, 4, 2, 32, 16, 2
SLOTS = BLOCK - 1
MASK = 3
FAVOURED = (100, 300)
Tensors = dict[str, torch.Tensor]

_CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": V, "hidden_size": H,
    "intermediate_size": FFN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV,
    "head_dim": D, "max_position_embeddings": 2048, "tie_word_embeddings": False, "rope_theta": 1e6,
    "rms_norm_eps": 1e-6, "hidden_act": "silu", "attention_bias": False, "dtype": "float32",
    "bos_token_id": None, "eos_token_id": 1, "pad_token_id": 2,
}  # fmt: skip
_DFLASH = {
    "block_size": BLOCK,
    "num_target_layers": LAYERS,
    "target_layer_ids": [0, 2],
    "mask_token_id": MASK,
}


class _Random:
    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape: int, std: float = 0.15) -> torch.Tensor:
        return torch.randn(*shape, generator=self.generator) * std

    def linear(self, name: str, out: int, into: int) -> Tensors:
        return {f"{name}.weight": self(out, into), f"{name}.bias": self(out)}


def make_all(root: Path) -> dict[str, Path]:
    """``target`` and the six drafters under ``root``: checkpoint name (as in the arm table) -> folder."""
    makers = {
        "target": _target,
        "dflash": _dflash,
        "dflash2": _dflash2,
        "domino": _domino,
        "dspark": _dspark,
        "lilicorr": _lilicorr,
        "lilicorr-conv": _lilicorr_conv,
    }
    return {name: make(root / name) for name, make in makers.items()}


def _target(folder: Path) -> Path:
    draw = _Random(0)
    head = draw(V, H, std=1e-3)
    head[list(FAVOURED)] = draw(len(FAVOURED), H, std=1.0)
    weights = {
        "model.embed_tokens.weight": draw(V, H, std=0.5),
        "model.norm.weight": torch.ones(H),
        "lm_head.weight": head,
    }
    for layer in range(LAYERS):
        weights |= _layer(draw, f"model.layers.{layer}.")
    _write(folder, _CONFIG, weights)
    _tokenizer(folder)
    return folder


def _layer(draw: _Random, at: str) -> Tensors:
    ones = {f"{at}{n}.weight": torch.ones(H) for n in ("input_layernorm", "post_attention_layernorm")}
    ones |= {f"{at}self_attn.{n}.weight": torch.ones(D) for n in ("q_norm", "k_norm")}
    shapes = {
        "self_attn.q_proj": (HEADS * D, H),
        "self_attn.k_proj": (KV * D, H),
        "self_attn.v_proj": (KV * D, H),
        "self_attn.o_proj": (H, HEADS * D),
        "mlp.gate_proj": (FFN, H),
        "mlp.up_proj": (FFN, H),
        "mlp.down_proj": (H, FFN),
    }
    return ones | {f"{at}{n}.weight": draw(*shape) for n, shape in shapes.items()}


def _backbone(draw: _Random) -> Tensors:
    weights = {
        "fc.weight": draw(H, 2 * H),
        "hidden_norm.weight": torch.ones(H),
        "norm.weight": torch.ones(H),
    }
    for layer in range(DRAFT_LAYERS):
        weights |= _layer(draw, f"layers.{layer}.")
    return weights


def _convolutions(draw: _Random) -> Tensors:
    weights: Tensors = {}
    for layer in range(DRAFT_LAYERS):
        for place in ("attention_conv", "mlp_conv"):
            kernel = draw(2, 2, H, std=0.1)
            kernel[:, 0] += 1
            weights[f"layers.{layer}.{place}.base_kernel"] = kernel
            weights[f"layers.{layer}.{place}.kernel_projection.weight"] = draw(2 * 2 * (H // 32), H)
    return weights


def _dflash(folder: Path) -> Path:
    return _draft(folder, "DFlashDraftModel", _backbone(_Random(1)), {})


def _dflash2(folder: Path) -> Path:
    draw, rank = _Random(2), 8
    weights = _backbone(draw) | _convolutions(draw)
    for name in ("predecessor_codebook", "successor_codebook"):
        weights[f"candidate_selector.{name}"] = draw(V, rank, std=1)
    weights["candidate_selector.hidden_projection.weight"] = draw(rank, H)
    keys = {"selector_rank": rank, "selector_top_k": 8, "conv_kernel_size": 2, "conv_group_size": 32}
    return _draft(folder, "DFlash2DraftModel", weights, keys)


def _domino(folder: Path) -> Path:
    draw, gru, width = _Random(3), 64, 48
    weights = _backbone(draw) | {
        "prefix_gru.weight_ih_l0": draw(3 * gru, H),
        "prefix_gru.weight_hh_l0": draw(3 * gru, gru),
        "embed_proj.0.weight": draw(width, H + gru),
        "embed_proj.2.weight": draw(V, width),
    }
    keys = {"projector_type": "domino", "shift_label": True, "pure_draft_prefix_len": 1}
    return _draft(folder, "DFlashDraftModel", weights, {**keys, "gru_hidden_dim": gru, "emb_dim": width})


def _dspark(folder: Path) -> Path:
    draw, rank = _Random(4), 16
    weights = _backbone(draw) | {
        "markov_head.markov_w1.weight": draw(V, rank, std=0.3),
        "markov_head.markov_w2.weight": draw(V, rank, std=0.3),
    }
    top = {"markov_rank": rank, "markov_head_type": "vanilla", "mask_token_id": MASK}
    return _draft(folder, "Qwen3DSparkModel", weights, {"block_size": SLOTS}, **top)


def _lilicorr(folder: Path) -> Path:
    draw = _Random(5)
    return _draft(folder, "LiLiCorrDraftModel", _backbone(draw) | _lilicorr_head(draw), _LILICORR)


def _lilicorr_conv(folder: Path) -> Path:
    draw = _Random(6)
    weights = _backbone(draw) | _lilicorr_head(draw) | _convolutions(draw)
    keys = _LILICORR | {"conv_kernel_size": 2, "conv_group_size": 32}
    return _draft(folder, "LiLiCorrDraftModel", weights, keys)


_WIDTH, _NHEAD, _FACTOR, _TOPK = 64, 2, 16, 4
_LILICORR = {
    "lilicorr_enabled": True, "lilicorr_candidate_topk": _TOPK, "lilicorr_hidden_size": _WIDTH,
    "lilicorr_num_layers": 1, "lilicorr_num_heads": _NHEAD, "lilicorr_mlp_ratio": 2.0, "lilicorr_factor_dim": _FACTOR,
    "lilicorr_vector_eps": 1e-6, "lilicorr_logit_scale": 5.0,
}  # fmt: skip


def _lilicorr_head(draw: _Random) -> Tensors:
    w = _WIDTH
    weights = {
        "slot_embedding": draw(1, 1, SLOTS, 1, w), "rank_embedding": draw(1, 1, 1, _TOPK, w),
        "relative_slot_bias": draw(_NHEAD, 2 * SLOTS + 1), "same_slot_bias": draw(_NHEAD),
        "feature_norm.weight": torch.ones(5), "feature_norm.bias": torch.zeros(5),
        "output_norm.weight": torch.ones(w), "anchor_norm.weight": torch.ones(w),
        "layers.0.attn_norm.weight": torch.ones(w), "layers.0.mlp_norm.weight": torch.ones(w),
        "layers.0.attn.in_proj_weight": draw(3 * w, w), "layers.0.attn.in_proj_bias": draw(3 * w),
    }  # fmt: skip
    linears = {
        "token_proj": (w, H), "pass_hidden_proj": (w, H),
        "feature_mlp.up_proj": (w, 5), "feature_mlp.down_proj": (w, w),
        "context_proj": (w, H), "factor_input_proj": (w, 3 * w), "out_head": (_FACTOR, w), "in_head": (_FACTOR, w),
        "anchor_out_head": (_FACTOR, w), "layers.0.attn.out_proj": (w, w), "layers.0.mlp.up_proj": (2 * w, w),
        "layers.0.mlp.down_proj": (w, 2 * w),
    }  # fmt: skip
    for name, (out, into) in linears.items():
        weights |= draw.linear(name, out, into)
    return {f"lilicorr.{name}": tensor for name, tensor in weights.items()}


def _draft(folder: Path, architecture: str, weights: Tensors, keys: dict[str, object], **top: object) -> Path:
    config = _CONFIG | {
        "architectures": [architecture],
        "num_hidden_layers": DRAFT_LAYERS,
        "dflash_config": {**_DFLASH, **keys},
        **top,
    }
    _write(folder, config, weights)
    return folder


def _write(folder: Path, config: dict[str, object], weights: Tensors) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {chr(i) if 33 <= i < 127 else f"<{i}>": i for i in range(V)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<0>"))
    words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    fast = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<1>", pad_token="<2>", unk_token="<0>")
    fast.save_pretrained(folder)


def of_width(folder: Path, copy: Path, window: int) -> Path:
    """A copy of a drafter that verifies ``window`` positions; not for LiLiCorr, whose tensors know it."""
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text())
    size = window - (config["architectures"] == ["Qwen3DSparkModel"])
    (config if "block_size" in config else config["dflash_config"])["block_size"] = size
    (copy / "config.json").write_text(json.dumps(config))
    return copy

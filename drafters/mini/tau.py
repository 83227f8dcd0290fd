"""Acceptance length of the mini drafters on held-out prompts at temperature 0: `python -m drafters.mini.tau`.

Every arm decodes every prompt with the reference loop (`drafters.reference.decode`); tau = 1 + accepted drafts /
verify blocks, pooled over a domain's prompts; intervals are a seeded bootstrap over prompts, the same draws for every
arm. Writes tau.json and, from it, tau.md beside the weights. Nothing here is timed: speed is measured on the server.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer

from drafters.corpus.conversation import read_rows
from drafters.mini.complete import LIMIT
from drafters.mini.corpus import DOMAINS
from drafters.mini.tokenizer import END_ID
from drafters.model.drafter import load
from drafters.model.registry import DRAFTERS
from drafters.reference.decode import Rule, decode
from drafters.reference.target import Target
from sglang_specbench.digest import weights_digest

SHIPPED = ("dflash", "dflash2", "domino", "dspark", "lilicorr", "lilicorr-conv")
SEED, DRAWS = 42, 10_000
Counts = dict[str, np.ndarray]  # domain -> [prompts, 2]: accepted drafts, verify blocks


def count(folder: Path, arm: str, prompts: dict[str, list[list[int]]], target: Target) -> Counts:
    """Accepted drafts and verify blocks of ``arm`` on each prompt."""
    config = json.loads((folder / arm / "config.json").read_text())
    drafter = load(config, load_file(folder / arm / "model.safetensors"))
    counts = {}
    for domain, asked in prompts.items():
        decoded = [decode(target, drafter, ids, LIMIT, Rule(), eos_ids=(END_ID,)) for ids in asked]
        counts[domain] = np.array([[sum(d.accepted), len(d.accepted)] for d in decoded])
    return counts


def estimate(counts_P2: np.ndarray) -> np.ndarray:
    """Tau of all prompts, then of each bootstrap draw of them: [1 + DRAWS]."""
    drawn = np.random.default_rng(SEED).integers(len(counts_P2), size=(DRAWS, len(counts_P2)))
    pooled = np.concatenate([counts_P2.sum(0)[None], counts_P2[drawn].sum(1)])
    return 1 + pooled[:, 0] / pooled[:, 1]


def cell(draws: np.ndarray) -> dict[str, float]:
    """The estimate and its 95 % interval."""
    low, high = np.quantile(draws[1:], (0.025, 0.975))
    return {"tau": round(float(draws[0]), 3), "low": round(float(low), 3), "high": round(float(high), 3)}


def summarise(counts: dict[str, Counts]) -> list[dict[str, Any]]:
    """One row for each arm and domain, and each arm's mean over domains with its difference from DFlash's."""
    rows: list[dict[str, Any]] = []
    mean = {}
    for arm, by_domain in counts.items():
        draws = {domain: estimate(values) for domain, values in by_domain.items()}
        rows += [
            {"arm": arm, "domain": domain, **cell(values), "blocks": int(by_domain[domain][:, 1].sum())}
            for domain, values in draws.items()
        ]
        mean[arm] = np.mean(list(draws.values()), axis=0)
        longer = cell(mean[arm] - mean["dflash"])
        rows.append({"arm": arm, "domain": "mean", **cell(mean[arm]), "over_dflash": longer})
    return rows


SCALE = (
    "The order of the arms here is not the order at the paper's scale: these weights were trained briefly, and "
    "LiLiCorr's head starts almost blind to the candidates' tokens, because the mini target's embeddings are about "
    "twenty times smaller than its hidden states. The other heads have token tables of their own."
)


def markdown(report: dict[str, Any]) -> str:
    """The table of arms and domains."""
    columns = (*DOMAINS, "mean")
    cells = {(row["arm"], row["domain"]): row for row in report["rows"]}
    lines = [f"| arm | {' | '.join(columns)} | mean over DFlash's |", "|---" * (len(columns) + 2) + "|"]
    for arm in dict.fromkeys(row["arm"] for row in report["rows"]):
        values = [_shown(cells[arm, column]) for column in columns]
        lines.append(f"| {arm} | {' | '.join(values)} | {_shown(cells[arm, 'mean']['over_dflash'])} |")
    note = (
        f"Temperature 0, {report['prompts']} held-out prompts a domain, at most {LIMIT} tokens each; 95 % bootstrap "
        f"intervals over prompts ({DRAWS:,} draws). Written by `python -m drafters.mini.tau`."
    )
    return "\n".join([*lines, "", note, "", SCALE, ""])


def _shown(values: dict[str, float]) -> str:
    return f"{values['tau']:.2f} [{values['low']:.2f}, {values['high']:.2f}]"


def read_prompts(folder: Path, limit: int) -> dict[str, list[list[int]]]:
    """Token ids of the held-out prompts by domain, as the chat template renders them."""
    tokenizer = AutoTokenizer.from_pretrained(folder / "target")
    options = {"add_generation_prompt": True, "return_dict": False}
    return {
        domain: [
            tokenizer.apply_chat_template([{"role": "user", "content": row["turns"][0]}], **options)
            for _, row in read_rows(folder / "prompts" / f"{domain}.jsonl")
        ][:limit]
        for domain in DOMAINS
    }


def main(folder: Path, limit: int) -> None:
    """Measure every arm in ``folder`` and write its tau.json and tau.md."""
    prompts = read_prompts(folder, limit)
    target = Target.load(folder / "target")
    arms = [arm for arm in DRAFTERS if (folder / arm / "config.json").is_file()]
    counts = {arm: count(folder, arm, prompts, target) for arm in arms}
    digests = {name: weights_digest(folder / name) for name in ("target", *arms)}
    report = {"prompts": len(prompts[DOMAINS[0]]), "weights": digests, "rows": summarise(counts)}
    (folder / "tau.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "tau.md").write_text(markdown(report))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent, help="where target/ and the arms lie")
    parser.add_argument("--limit", type=int, default=1000, help="prompts of each domain")
    torch.set_num_threads(1)
    main(**vars(parser.parse_args()))

"""What the mini drafters would draft from every anchor of a text: `python -m drafters.mini.anchors`.

At temperature 0 the target's text does not depend on the drafter, and a draft depends on the text before it alone. So
the drafts from all anchors of a text say what a run at any width would have committed: it is walked, not served. Two
things are made of them, both for docs/theory.md:

- ``anchors.json``: for each arm and prompt the blocks of the full width by accepted drafts, and for each width the
  tokens and blocks of a run that drafts whole blocks and verifies their first slots. With them, how often a right
  draft is wrong from the next anchor.
- DFlash's candidates of a slot in order, for token trees: in ``anchors.json`` the rank of the target's token from every
  anchor, a digit a slot (`RANKS`: not among them), so that any tree can be walked; in ``ranks.csv`` the marginals, a
  line a depth: how often the candidate of each rank is the target's token where a chain's blocks begin, given that the
  tokens before it were candidates, too.

Shapes: T anchors of a text, D drafted slots, R ranks.
"""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from drafters.mini.corpus import DOMAINS
from drafters.mini.tau import read_prompts
from drafters.mini.tokenizer import END_ID
from drafters.model.drafter import Drafter, load
from drafters.model.registry import DRAFTERS
from drafters.reference.decode import Rule, decode, drafting
from drafters.reference.target import Cursor, Target
from sglang_specbench.digest import weights_digest

PROMPTS, TOKENS = 10, 160  # of each domain; answered tokens, at most
RANKS = 8
GREEDY = Rule()


def block_anchors(right_TD: np.ndarray, width: int) -> np.ndarray:
    """Anchors of the blocks of a run that verifies ``width`` positions."""
    return np.cumsum([0, *(accepted + 1 for accepted in walked(right_TD, width))])[:-1]


def walked(right_TD: np.ndarray, width: int) -> list[int]:
    """Accepted drafts of each block of a run that verifies ``width`` positions, anchor included; the last one uncut."""
    found, anchor = [], 0
    while anchor < len(right_TD):
        drafts = right_TD[anchor, : width - 1]
        found.append(len(drafts) if drafts.all() else int(drafts.argmin()))
        anchor += found[-1] + 1
    return found


def no_longer_right(right_TD: np.ndarray) -> tuple[int, int]:
    """Right drafts whose place is drafted wrong from the next anchor, and all right drafts of slot 2 on."""
    far, near = right_TD[:-1, 1:], right_TD[1:, :-1]
    return int((far & ~near).sum()), int(far.sum())


def rank_counts(rank_TD: np.ndarray) -> np.ndarray:
    """[D, R + 1]: anchors by the rank of the target's token, those whose earlier ones were below R; last: no rank."""
    within = np.minimum(rank_TD, RANKS)
    alive = np.cumprod(np.concatenate([np.ones((len(within), 1), int), within[:, :-1] < RANKS], axis=1), axis=1)
    return np.stack([np.bincount(r[a == 1], minlength=RANKS + 1) for r, a in zip(within.T, alive.T, strict=True)])


@torch.no_grad()
def every_anchor(target: Target, drafter: Drafter, prompt: list[int], answer: list[int]) -> tuple[np.ndarray, ...]:
    """(right [T, D], rank of the target's token among the slot's own candidates [T, D]) from each anchor of ``answer``.

    The last D tokens of ``answer`` are only looked ahead at.
    """
    text = torch.tensor([*prompt, *answer])
    _, features_SF = Cursor(target, drafter.config.target_layer_ids).read(text)
    context_1SH, drafted = drafter.context(features_SF[None]), drafter.config.drafted
    right, ranks, no_coins = [], [], torch.zeros(1, drafted)
    for place in range(len(prompt), len(text) - drafted):
        anchor_1 = text[place : place + 1]
        made = drafting(target, drafter, context_1SH[:, :place], anchor_1, GREEDY, no_coins)
        follows_D = text[place + 1 : place + 1 + drafted]
        right.append((drafter.head.propose(made).tokens_BD[0] == follows_D).numpy())
        logits_DV = (made.h_BDH @ made.head_VH.T)[0]
        ranks.append((logits_DV > logits_DV.gather(1, follows_D[:, None])).sum(1).numpy())
    return np.array(right), np.array(ranks)


def loaded(folder: Path, arm: str) -> Drafter:
    """The shipped drafter."""
    config = json.loads((folder / arm / "config.json").read_text())
    return load(config, load_file(folder / arm / "model.safetensors"))


def answer(target: Target, drafter: Drafter, prompt: list[int]) -> list[int]:
    """The target's greedy tokens, and D more to look ahead at; the same for every drafter."""
    text = decode(target, drafter, prompt, TOKENS + drafter.config.drafted, GREEDY).output_ids
    end = text.index(END_ID) if END_ID in text else TOKENS
    return text[: min(end, TOKENS) + drafter.config.drafted]


def of_arm(
    drafter: Drafter, target: Target, texts: list[tuple[list[int], list[int]]]
) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The arm's entry of anchors.json, and the ranks of each text [T, D], clipped to `RANKS`."""
    widths = range(2, drafter.config.drafted + 2)
    histograms, runs, worse, ranks = [], [], [], []
    for prompt, text in texts:
        right, rank = every_anchor(target, drafter, prompt, text)
        blocks = {width: walked(right, width) for width in widths}
        histograms.append(np.bincount(blocks[widths[-1]], minlength=widths[-1]).tolist())
        runs.append([(sum(found) + len(found), len(found)) for found in blocks.values()])
        worse.append(no_longer_right(right))
        ranks.append(np.minimum(rank, RANKS))
    tokens, blocks = np.sum(runs, axis=0).T.tolist()
    lost, right_ones = np.sum(worse, axis=0).tolist()
    made = {
        str(width): {"tokens": committed, "blocks": count}
        for width, committed, count in zip(widths, tokens, blocks, strict=True)
    }
    entry = {"histograms": histograms, "widths": made, "no longer right": lost, "right": right_ones}
    return entry, ranks


def main(folder: Path, limit: int) -> None:
    """Draft from every anchor, and write anchors.json and ranks.csv into ``folder``."""
    prompts = [ids for asked in read_prompts(folder, limit).values() for ids in asked]
    target, plain = Target.load(folder / "target"), loaded(folder, "dflash")
    texts = [(prompt, answer(target, plain, prompt)) for prompt in prompts]
    found = {}
    for arm in (arm for arm in DRAFTERS if (folder / arm / "config.json").is_file()):
        found[arm] = of_arm(loaded(folder, arm), target, texts)
        print(arm, {width: round(run["tokens"] / run["blocks"], 3) for width, run in found[arm][0]["widths"].items()})
    digests = {name: weights_digest(folder / name) for name in ("target", *found)}
    ranks = found["dflash"][1]
    report = {
        "prompts": limit * len(DOMAINS), "tokens": TOKENS, "weights": digests,
        "arms": {arm: entry for arm, (entry, _) in found.items()},
        "ranks": [["".join(map(str, line)) for line in rank] for rank in ranks],
    }  # fmt: skip
    (folder / "anchors.json").write_text(json.dumps(report) + "\n")
    counts = np.sum([rank_counts(rank[block_anchors(rank == 0, rank.shape[1] + 1)]) for rank in ranks], axis=0)
    marginals = counts[:, :RANKS] / counts.sum(axis=1, keepdims=True)
    with (folder / "ranks.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([f"{share:.5f}" for share in line] for line in marginals)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent, help="where target/ and the arms lie")
    parser.add_argument("--limit", type=int, default=PROMPTS, help="prompts of each domain")
    torch.set_num_threads(1)
    main(**vars(parser.parse_args()))

"""Drafts from every anchor: the walk is what the reference loop does, and ranks are counted by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from drafters.mini.anchors import RANKS, block_anchors, every_anchor, no_longer_right, rank_counts, walked  # noqa: E402

MINI = Path(__file__).resolve().parents[3] / "drafters" / "mini"


def test_a_walk_by_hand():
    right = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 0]], bool)
    assert walked(right, 4) == [2, 3]  # anchors 0 and 3; the last block is not cut
    assert block_anchors(right, 4).tolist() == [0, 3]
    assert walked(right, 2) == [1, 1, 0]  # anchors 0, 2, 4
    # right from anchors 0, 1, 1, 3, 3 at slots 2, 2, 3, 2, 3; from the next anchor only the second still is
    assert no_longer_right(right) == (4, 5)


def test_ranks_by_hand():
    """The second anchor's first token has no rank, so its later ones are not counted."""
    counts = rank_counts(np.array([[0, 2], [RANKS + 3, 0], [1, RANKS]]))
    assert counts[0].tolist() == [1, 1, *[0] * (RANKS - 2), 1]
    assert counts[1].tolist() == [0, 0, 1, *[0] * (RANKS - 3), 1]


@pytest.mark.parametrize("arm", ["dflash", "dspark"])
def test_walked_blocks_are_those_of_the_reference_loop(arm, monkeypatch):
    """Whole blocks drafted, first slots verified: the loop with a shortened proposal, block by block."""
    import torch
    from safetensors.torch import load_file

    from drafters.mini.tau import read_prompts
    from drafters.model.drafter import load
    from drafters.reference import decode as loop
    from drafters.reference.target import Target

    torch.set_num_threads(1)
    target = Target.load(MINI / "target")
    drafter = load(json.loads((MINI / arm / "config.json").read_text()), load_file(MINI / arm / "model.safetensors"))
    prompt, tokens = read_prompts(MINI, 1)["prose"][0], 60
    text = loop.decode(target, drafter, prompt, tokens + 15, loop.Rule()).output_ids
    right, _ = every_anchor(target, drafter, prompt, text)
    whole = loop.draft
    for width in (16, 6):
        monkeypatch.setattr(
            loop, "draft", lambda *a, w=width: replace(p := whole(*a), tokens_BD=p.tokens_BD[:, : w - 1])
        )
        found = loop.decode(target, drafter, prompt, tokens, loop.Rule()).accepted
        assert walked(right, width)[: len(found)] == found


def test_the_shipped_counts_belong_to_the_shipped_weights():
    from sglang_specbench.digest import weights_digest

    stored = json.loads((MINI / "anchors.json").read_text())
    for name, digest in stored["weights"].items():
        assert weights_digest(MINI / name) == digest, "rerun: python -m drafters.mini.anchors"

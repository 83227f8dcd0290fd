"""A wide run says what narrower verification gives: the mini drafters in the reference loop, at temperature 0.

Every block is drafted whole and its first slots are verified, so the draft is the same and only the anchors move. Both
ways to read a narrower width off the wide run (`harness.speedup_model.widths`) stand against what the narrow loop does.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.speedup_model.widths import fixed_places, truncated

pytestmark = [pytest.mark.torch, pytest.mark.slow]
MINI = Path(__file__).resolve().parents[2] / "drafters" / "mini"
WIDTHS, PROMPTS, TOKENS = (16, 8, 4), 2, 64
# a tenth: more than the error of any arm and width in docs/theory.md
CLOSE = 0.10


def decoded(arm, monkeypatch):
    """For each width: accepted drafts of every block, and the texts."""
    import json

    import torch
    from safetensors.torch import load_file

    from drafters.mini.tau import read_prompts
    from drafters.model.drafter import load
    from drafters.reference import decode as loop
    from drafters.reference.target import Target

    torch.set_num_threads(1)
    target = Target.load(MINI / "target")
    config = json.loads((MINI / arm / "config.json").read_text())
    drafter = load(config, load_file(MINI / arm / "model.safetensors"))
    prompts = [ids for asked in read_prompts(MINI, PROMPTS).values() for ids in asked]
    whole = loop.draft
    accepted, texts = {}, {}
    for width in WIDTHS:

        def narrow(*args, width=width):
            proposal = whole(*args)
            return replace(proposal, tokens_BD=proposal.tokens_BD[:, : width - 1])

        monkeypatch.setattr(loop, "draft", narrow)
        answers = [loop.decode(target, drafter, ids, TOKENS, loop.Rule()) for ids in prompts]
        accepted[width] = np.concatenate([answer.accepted for answer in answers])
        texts[width] = [answer.output_ids for answer in answers]
    return accepted, texts


@pytest.mark.parametrize("arm", ["dflash", "domino"])
def test_fixed_places_come_closer_to_the_narrow_run_than_the_cut_histogram(arm, monkeypatch):
    accepted, texts = decoded(arm, monkeypatch)
    assert texts[16] == texts[8] == texts[4]  # the text does not depend on the width
    survival = np.array([(accepted[16] > k).mean() for k in range(15)])[:, None]
    for width in WIDTHS:
        measured = 1 + accepted[width].mean()
        cut, fixed = (float(f(survival, width)[0]) for f in (truncated, fixed_places))
        print(f"{arm} width {width}: measured {measured:.3f}, cut {cut:.3f}, fixed places {fixed:.3f}")
        assert abs(fixed / measured - 1) <= abs(cut / measured - 1) + 1e-9
        assert cut < measured or width == 16  # its anchors are harder than the narrow run's
        assert fixed == pytest.approx(measured, rel=CLOSE)

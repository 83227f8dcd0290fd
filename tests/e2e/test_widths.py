"""One sweep, every width, on real servers: DFlash at window 16 predicts the acceptance length of the same at window 8.

The narrower server also drafts a narrower block, whose slots attend to each other both ways, so it is another draft and
the prediction is not exact. The texts are. That the draft is what matters least is shown without a server in
tests/parity/test_verification_width.py.
"""

from pathlib import Path

import numpy as np
import pytest

from harness.speedup_model.widths import fixed_places
from harness.stats import resample
from sglang_specbench.launch import Launch
from tests.cpu_server.servers import free_port, serve, start_ordinarily

pytestmark = [pytest.mark.sglang, pytest.mark.torch, pytest.mark.long]
MINI = Path(__file__).resolve().parents[2] / "drafters" / "mini"
PROMPTS, TOKENS, WIDE, NARROW = 15, 96, 16, 8


def served(width, log_file):
    """Texts, and blocks by accepted drafts [prompts, 16], from a server that verifies ``width`` positions."""
    from drafters.mini.tau import read_prompts

    prompts = [ids for asked in read_prompts(MINI, PROMPTS // 3).values() for ids in asked]
    launch = Launch(
        arm="dflash", proposal="argmax", target=str(MINI / "target"), draft=str(MINI / "dflash"), device="cpu",
        dtype="float32", port=free_port(), seed=42, context_length=1024,
        extra=("--speculative-num-draft-tokens", str(width)),
    )  # fmt: skip
    with serve(launch, log_file, start_ordinarily) as server:
        found = [server.generate([ids], 0, TOKENS)[0] for ids in prompts]
    histograms = [answer["meta_info"]["spec_correct_drafts_histogram"] for answer in found]
    return [a["output_ids"] for a in found], np.array([h + [0] * (WIDE - len(h)) for h in histograms])


def test_a_wide_run_predicts_a_narrow_one(tmp_path):
    """Same texts; the paired difference of the two taus is not told from a tenth of tau or less."""
    texts, wide = served(WIDE, tmp_path / "wide.log")
    narrow_texts, narrow = served(NARROW, tmp_path / "narrow.log")
    assert texts == narrow_texts
    assert not narrow[:, NARROW:].any()
    drawn = resample.counts([str(i) for i in range(len(texts))])
    reached = (drawn @ wide)[:, ::-1].cumsum(axis=1)[:, ::-1]
    predicted = fixed_places((reached[:, 1:] / reached[:, :1]).T, NARROW)
    blocks = drawn @ narrow
    measured = 1 + blocks @ np.arange(WIDE) / blocks.sum(axis=1)
    off = measured / predicted - 1
    print(f"width {NARROW}: predicted {predicted[0]:.3f}, measured {measured[0]:.3f}, {100 * off[0]:+.1f} %")
    low, high = np.quantile(off[1:], (0.025, 0.975))
    assert low < 0.10
    assert high > -0.10

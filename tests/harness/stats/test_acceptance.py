"""Acceptance from hand-made rows: every way in which a request can end, and the identities between estimators."""

import numpy as np
import pytest

from harness.schema.header import Header
from harness.schema.request import Row
from harness.stats import acceptance
from harness.stats.estimate import Estimate, Missing
from harness.stats.estimates import measure
from harness.stats.prompt_totals import panels
from harness.stats.setting import Setting
from harness.store import cell_file
from harness.store.frames import framed
from tests import synthetic_run as synthetic

PLACE = Setting(target="T", arm="dflash", benchmark="gsm8k", temperature=0.0)


def row(index, completion, histogram=None, **changes):
    """A request that committed ``histogram`` (index = drafts accepted), a second per block after 1 s of prefill."""
    hist = None if histogram is None else tuple(histogram) + (0,) * (16 - len(histogram))
    blocks, correct = (None, None) if hist is None else (sum(hist), sum(i * n for i, n in enumerate(hist)))
    fields = {
        "index": index, "prompt_id": f"p{index}", "prompt_hash": "", "prompt_tokens": 5,
        "completion_tokens": completion, "verify_ct": blocks, "correct_drafts": correct,
        "histogram": hist, "sent_s": float(index), "first_token_s": index + 1.0,
        "done_s": index + 1.0 + (blocks or 0), "output_hash": "",
    }  # fmt: skip
    return Row(**{**fields, **changes})


def results(rows, arm="dflash", wall=10.0):
    header = Header(
        cell=synthetic.cell("T", arm, "gsm8k", prompts=len(rows)), outcome="ok", wall_s=wall, allocation="a"
    )
    frames = framed([(header, cell_file.as_table(rows))])  # some of these rows are refused from a file
    return measure(frames.cells, frames.rows, "made")


def ledger(rows):
    found = results(rows)
    return {name: found.get(PLACE, name) for name in acceptance.LEDGER}


def test_whole_blocks():
    """Blocks of 0, 2 and 2 drafts: 1 prefill token + 3 bonus + 4 drafts."""
    found = ledger([row(0, 8, [1, 0, 2])])
    assert found["tau"].value == pytest.approx(1 + 4 / 3)
    assert found["tau_emitted"].value == pytest.approx(7 / 3)
    assert found["tau_sglang"].value == pytest.approx(8 / 3)


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_block_cut_by_eos_or_the_length_limit_counts_whole_in_tau_only(tmp_path, reason):
    """The last block committed 3 tokens, the user got 1 of them."""
    found = ledger([row(0, 6, [1, 0, 2], finish_reason=reason)])
    assert found["tau"].value == pytest.approx(1 + 4 / 3)
    assert found["tau_emitted"].value == pytest.approx(5 / 3)
    assert found["tau_sglang"].value == pytest.approx(6 / 3)


def test_blocks_are_pooled_over_requests_not_ratios():
    """One block of 16 and nine of 1: pooled 25 / 10, the mean of ratios is far off."""
    found = ledger([row(0, 17, [0] * 15 + [1]), row(1, 10, [9])])
    assert found["tau"].value == pytest.approx(2.5)
    assert found["tau_request_mean"].value == pytest.approx((17 / 1 + 10 / 9) / 2)


def test_one_token_outputs_have_no_block_and_are_not_missed():
    found = results([row(0, 1), row(1, 4, [0, 0, 1])])
    assert found.get(PLACE, "tau").value == pytest.approx(3)
    assert found.get(PLACE, "tau_emitted").value == pytest.approx(3)
    assert found.get(PLACE, "throughput").value == pytest.approx(5 / 10)
    assert found.cautions[PLACE] == ()


def test_missing_spec_fields_leave_the_row_out_of_tau_and_say_so():
    found = results([row(0, 9), row(1, 4, [0, 0, 1])])
    assert found.get(PLACE, "tau").value == pytest.approx(3)
    assert found.get(PLACE, "throughput").value == pytest.approx(13 / 10)
    assert found.cautions[PLACE] == ("1 requests without usable counts are left out of tau",)


def test_a_retracted_request_is_left_out_of_tau_but_not_of_throughput():
    found = results([row(0, 9, [4, 0, 1], retractions=1), row(1, 4, [0, 0, 1])])
    assert found.get(PLACE, "tau").value == pytest.approx(3)
    assert found.get(PLACE, "throughput").value == pytest.approx(13 / 10)
    assert "left out of tau" in found.cautions[PLACE][0]


def test_an_aborted_request_counts_nowhere_and_is_named():
    found = results([row(0, 5, [4], outcome="aborted", reason="client"), row(1, 4, [0, 0, 1])])
    assert found.get(PLACE, "tau").value == pytest.approx(3)
    assert found.get(PLACE, "throughput").value == pytest.approx(4 / 10)
    assert found.cautions[PLACE] == ("1 failed requests are left out",)


def test_zero_blocks_is_a_reason_not_a_number():
    found = results([row(0, 1), row(1, 1)])
    assert all(isinstance(found.get(PLACE, name), Missing) for name in (*acceptance.LEDGER, "block_ms", "a1"))
    assert found.get(PLACE, "throughput").value == pytest.approx(0.2)


def test_a_single_prompt_has_a_value_and_no_interval():
    tau = ledger([row(0, 8, [1, 0, 2])])["tau"]
    assert isinstance(tau, Estimate)
    assert (tau.low, tau.high, tau.n) == (None, None, 1)


def test_two_turns_are_one_prompt():
    rows = [row(0, 8, [1, 0, 2]), row(1, 8, [1, 0, 2], prompt_id="p0", turn=1)]
    assert ledger(rows)["tau"].n == 1


def test_survival_sums_to_tau():
    rng = np.random.default_rng(0)
    rows = [row(i, 300, rng.multinomial(60, np.full(16, 1 / 16))) for i in range(4)]
    header = Header(cell=synthetic.cell("T", "dflash", "gsm8k", prompts=4), outcome="ok", wall_s=9.0, allocation="a")
    frames = framed([(header, cell_file.as_table(rows))])
    (panel,) = panels(frames.cells, frames.rows)
    totals = panel.totals(0)
    a = acceptance.survival(totals)
    np.testing.assert_allclose(1 + a.sum(axis=0), acceptance.ledger(totals)["tau"])
    assert not a[15:].any()
    assert a[:, 0].tolist() == sorted(a[:, 0], reverse=True)

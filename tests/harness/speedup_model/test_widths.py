"""Every width from one wide run: exact in the two worlds that bound it, and the choice of the best width."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.speedup_model.costs import from_widths, in_passes
from harness.speedup_model.speedup import free_verification, iid_survival, linear_verification, parallel_draft
from harness.speedup_model.widths import SAME_DRAFT, best_width, draft_note, every_width, fixed_places, truncated
from sglang_specbench.arms import ARMS

WIDE = 16


def survival_of(accepted):
    return np.array([(accepted > k).mean() for k in range(WIDE - 1)])[:, None]


def blocks(right, width):
    """Accepted drafts of each whole block when draft i is right where ``right[i]``: a text walked from its start."""
    found, anchor = [], 0
    while anchor + WIDE < len(right):
        drafts = right[anchor + 1 : anchor + width]
        accepted = len(drafts) if drafts.all() else int(drafts.argmin())
        found.append(accepted)
        anchor += accepted + 1
    return np.array(found)


@pytest.mark.parametrize("width", [2, 4, 7, 8, 16])
def test_fresh_anchors_are_exact_where_drafts_are_independent_of_the_place(width):
    """A fresh coin for every draft of every block: 200,000 blocks; five standard errors of both runs together."""
    rng = np.random.default_rng(width)
    wide, narrow = ((rng.random((200_000, n - 1)) < 0.8).cumprod(axis=1).sum(axis=1) for n in (WIDE, width))
    error = np.hypot(narrow.std(), wide.std()) / np.sqrt(200_000)
    assert abs(float(truncated(survival_of(wide), width)[0]) - (1 + narrow.mean())) < 5 * error


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_fixed_places_are_exact_where_the_text_decides(width):
    """Widths that divide 16: the same text gives the same stretches; only the ends of the text may differ."""
    right = np.random.default_rng(1).random(300_000) < 0.8
    wide, narrow = blocks(right, WIDE), blocks(right, width)
    assert float(fixed_places(survival_of(wide), width)[0]) == pytest.approx(1 + narrow.mean(), rel=1e-4)


def walked(right, width, rows):
    """Blocks that start before ``rows``, and where the last one ends; ``right[t, k]``: draft k + 1 from anchor t."""
    count, anchor = 0, 0
    while anchor < rows:
        drafts = right[anchor, : width - 1]
        anchor += 1 + (len(drafts) if drafts.all() else int(drafts.argmin()))
        count += 1
    return count, anchor


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.floats(0.05, 0.9), st.sampled_from([1, 2, 4, 8]))
def test_fixed_places_are_a_floor_where_a_nearer_draft_is_never_worse(seed, rate, width):
    """Each place is right from anchors at most so far back: a narrow run needs no more blocks than fixed places say."""
    rows = 400
    reach = np.random.default_rng(seed).geometric(rate, size=rows + 3 * WIDE) - 1
    anchors = np.arange(rows + 2 * WIDE)[:, None]
    right = np.arange(1, WIDE)[None, :] <= reach[anchors + np.arange(1, WIDE)]
    lengths, anchor = [], 0
    while anchor < rows:
        lengths.append(walked(right[anchor:], WIDE, 1)[1])
        anchor += lengths[-1]
    most = sum(-(-length // width) for length in lengths)
    assert walked(right, width, anchor)[0] <= most
    histogram = np.bincount(lengths, minlength=WIDE + 1)[1:]
    survival = (histogram[::-1].cumsum()[::-1][1:] / histogram.sum())[:, None]
    assert float(fixed_places(survival, width)[0]) == pytest.approx(anchor / most)  # the estimate is that floor


@pytest.mark.parametrize("width", [2, 4, 8])
def test_each_reading_is_exact_in_its_own_world_and_low_in_the_other(width):
    """60,000 anchors. Easy and hard stretches, place decides: the cut is low. Slots ever harder, no place: fixed is.

    Exact means five standard errors, from 30 batches of anchors: odds below 1 in 10^6 each.
    """
    rng, rows = np.random.default_rng(width), 60_000
    easy = (rng.random(rows + 2 * WIDE) < 0.04).cumsum() % 2 == 0
    at_place = rng.random(rows + 2 * WIDE) < np.where(easy, 0.97, 0.4)
    stretches = at_place[np.arange(rows)[:, None] + np.arange(1, WIDE)]
    ever_harder = rng.random((rows, WIDE - 1)) < 0.95 ** np.arange(1, WIDE)
    for right, exact, low in ((stretches, fixed_places, truncated), (ever_harder, truncated, fixed_places)):
        off = {exact: [], low: []}
        for part in np.split(right, 30):
            wide, narrow = (blocks_of(part, w) for w in (WIDE, width))
            for reading, found in off.items():
                found.append(float(reading(survival_of(wide), width)[0]) / (1 + narrow.mean()) - 1)
        error = {reading: np.std(found, ddof=1) / np.sqrt(30) for reading, found in off.items()}
        assert abs(np.mean(off[exact])) < 5 * error[exact] + 1 / len(part)  # a part's last block is not cut alike
        assert np.mean(off[low]) < -5 * error[low]


def blocks_of(right, width):
    """Accepted drafts of each block of a walk over all anchors."""
    found, anchor = [], 0
    while anchor < len(right):
        drafts = right[anchor, : width - 1]
        found.append(len(drafts) if drafts.all() else int(drafts.argmin()))
        anchor += found[-1] + 1
    return np.array(found)


def test_every_width_of_every_mini_arm_as_it_was_walked():
    """Recorded walks over drafts from every anchor (drafters/mini/anchors.py): 84 taus that no reading had a part in.

    A twentieth of tau is what a choice between neighbouring widths can bear; the walks lie within a fiftieth.
    """
    stored = json.loads((Path(__file__).resolve().parents[3] / "drafters/mini/anchors.json").read_text())
    off = {fixed_places: [], truncated: []}
    for entry in stored["arms"].values():
        counts = np.sum(entry["histograms"], axis=0)
        survival = (counts[::-1].cumsum()[::-1][1:] / counts.sum())[:, None]
        for width in range(2, WIDE):
            run = entry["widths"][str(width)]
            for reading, found in off.items():
                found.append(float(reading(survival, width)[0]) * run["blocks"] / run["tokens"] - 1)
    fixed, cut = (np.abs(found) for found in off.values())
    assert fixed.size == 14 * len(stored["arms"])
    assert fixed.max() < 0.05
    assert (fixed < cut).mean() > 0.9


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=15, max_size=15), st.integers(2, 16))
def test_no_width_commits_more_than_it_holds_or_than_the_wide_run(chances, width):
    survival = np.cumprod(chances)[:, None]
    for reading in (fixed_places, truncated):
        tau = float(reading(survival, width)[0])
        assert 1 - 1e-12 <= tau <= min(width, 1 + survival.sum()) * (1 + 1e-12)


def test_the_full_width_is_the_runs_own_tau():
    survival = np.array(iid_survival(0.8, 15))[:, None]
    assert truncated(survival, WIDE) == pytest.approx(1 + survival.sum())
    assert fixed_places(survival, WIDE) == pytest.approx(1 + survival.sum())


@settings(deadline=None)
@given(st.floats(0, 1))
def test_a_wider_block_never_commits_less(alpha):
    survival = np.array(iid_survival(alpha, 15))[:, None]
    taus = [float(truncated(survival, width)[0]) for width in range(1, 17)]
    assert taus == sorted(taus)
    assert taus[0] == 1


def test_the_best_width_by_hand():
    """Alpha 0.8 and a verification that costs 0.1 a slot more: and sure of it."""
    survival = np.repeat(np.array(iid_survival(0.8, 15))[:, None], 101, axis=1)
    costs = in_passes(15, parallel_draft(0.1), linear_verification(0.1), parallel=True)
    found = every_width(survival, 30, lambda width: costs.block(1, width))
    taus = {w: float(fixed_places(survival, w)[0]) for w in range(2, 17)}
    assert taus[8] == pytest.approx(sum(0.8**k for k in range(8)))  # 8 divides 16: no assumption matters
    rates = {w: tau / (1.1 + 0.1 * (w - 1)) for w, tau in taus.items()}
    best, low, high = best_width(found)
    assert best.width == low == high == max(rates, key=rates.get)
    assert best.speedup.value == pytest.approx(max(rates.values()))
    assert sum(w.best_share for w in found) == pytest.approx(1)
    free = in_passes(15, parallel_draft(0.1), free_verification, parallel=True)
    assert best_width(every_width(survival, 30, lambda width: free.block(1, width)))[0].width == WIDE


def test_doubt_of_the_best_width_comes_from_the_draws():
    """Half of the draws have alpha 0.5, half 0.9."""
    curves = [iid_survival(a, 15) for a in (0.7, *[0.5, 0.9] * 50)]
    costs = in_passes(15, parallel_draft(0.1), linear_verification(0.1), parallel=True)
    _, low, high = best_width(every_width(np.array(curves).T, 30, lambda width: costs.block(1, width)))
    assert low < high


def test_draws_without_a_block_have_no_best_width():
    """Two draws of three have no blocks, so no tau: they do not count as draws whose best width is the first."""
    curves = np.repeat(np.array(iid_survival(0.8, 15))[:, None], 4, axis=1)
    curves[:, 2:] = np.nan
    costs = in_passes(15, parallel_draft(0.1), free_verification, parallel=True)
    found = every_width(curves, 30, lambda width: costs.block(1, width))
    assert found[-1].best_share == 1
    assert best_width(found)[1:] == (WIDE, WIDE)


def test_every_speculative_algorithm_says_whether_its_draft_depends_on_the_width():
    assert {arm.algorithm for arm in ARMS.values()} - {""} == set(SAME_DRAFT)
    assert draft_note("lilicorr").startswith("another at another width: ")
    assert draft_note("eagle3").startswith("the same at every width: ")


def test_a_line_through_two_measured_widths():
    costs = from_widths({8: 1.4, 16: 1.8})
    assert [costs.block(1, w) for w in (4, 8, 12, 16)] == pytest.approx([1.2, 1.4, 1.6, 1.8])
    assert costs.ragged(4, 4 * 7) == pytest.approx(1.4)
    assert costs.source == "a line through measured widths 8, 16"
    bent = from_widths({4: 1.1, 8: 1.4, 16: 1.8})  # least squares by hand: 0.9 + 0.05714 w, so 1.3571 for 1.4
    assert bent.source == "a line through measured widths 4, 8, 16, off by at most 3.1 %"
    with pytest.raises(ValueError, match="one position takes -0"):
        from_widths({8: 0.5, 16: 2.0})
    with pytest.raises(ValueError, match="two widths"):
        from_widths({16: 1.8})

"""A drafter that collapses in mid-cell is seen; a steady one is not, with the stated odds."""

from dataclasses import replace

import numpy as np
import pytest

from harness.measure.acceptance_drift import FEWEST, ODDS, cautions, changed
from tests.harness.made import row


def rows(taus, rng, blocks=40, categories=("",)):
    """One prompt for each of ``taus``: drafts of its blocks are geometric with that mean, as a drafter's are."""
    made = []
    for i, tau in enumerate(taus):
        drafts = np.minimum(rng.geometric(1 / tau, size=blocks) - 1, 15)
        made.append(
            row(i, verify_ct=blocks, correct_drafts=int(drafts.sum()), category=categories[i % len(categories)])
        )
    return made


@pytest.mark.parametrize("place", [5, 15, 24])
def test_a_collapse_from_7_to_1_is_named_with_both_values_and_its_place(place):
    (said,) = cautions(rows([7.0] * place + [1.0] * (30 - place), np.random.default_rng(0)))
    before, after = said.split(" after ")[0].removeprefix("tau went from ").split(" to ")
    assert 5 < float(before) < 8
    assert float(after) == pytest.approx(1.0, abs=0.2)
    assert f"after {place} of 30 prompts" in said


def test_a_steady_drafter_on_uneven_prompts_is_not_named():
    rng = np.random.default_rng(1)
    assert [c for _ in range(50) for c in cautions(rows(rng.uniform(2, 9, size=30), rng))] == []


def test_the_false_alarm_rate_is_what_is_stated():
    """p-values of steady cells are at least uniform: 400 cells, and P(p <= 0.05) is 0.05 within four deviations."""
    rng = np.random.default_rng(2)
    odds = []
    for _ in range(400):
        correct = rng.gamma(2.0, 40.0, size=20)
        odds.append(changed(np.stack([correct, np.full(20, 40.0)], axis=1), np.full(20, ""))[1])
    share = np.mean(np.array(odds) <= 0.05)
    assert abs(share - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 400)
    assert min(odds) > ODDS / 2


def test_a_set_that_is_sorted_by_category_is_no_collapse():
    rng = np.random.default_rng(3)
    made = rows([8.0] * 15 + [3.0] * 15, rng)
    named = [replace(r, category="ab"[r.index // 15]) for r in made]
    assert cautions(made)
    assert cautions(named) == []


def test_too_few_prompts_and_ar_say_nothing():
    rng = np.random.default_rng(4)
    assert cautions(rows([7.0] * 3 + [1.0] * (FEWEST - 4), rng)) == []
    assert cautions([row(i, verify_ct=None, correct_drafts=None, histogram=None) for i in range(30)]) == []
    assert cautions([]) == []

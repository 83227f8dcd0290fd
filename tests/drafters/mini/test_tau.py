"""The mini report: pooled estimates, paired intervals, and a table that says what tau.json says."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from drafters.mini.corpus import DOMAINS  # noqa: E402
from drafters.mini.tau import SHIPPED, estimate, markdown, summarise  # noqa: E402


def test_tau_is_pooled_over_blocks_not_a_mean_of_ratios():
    assert estimate(np.array([[10, 2], [0, 8]]))[0] == 2.0  # the mean of 6 and 1 would be 3.5


def test_prompts_that_agree_leave_no_doubt():
    draws = estimate(np.array([[6, 3]] * 20))
    assert (draws == 3).all()


def test_the_interval_is_that_of_a_mean_when_every_prompt_has_one_block():
    """Normal theory: 400 prompts of one block, accepted 0 to 4: the half width is 1.96 sd / 20, within 10 %."""
    accepted = np.random.default_rng(1).integers(5, size=400)
    draws = estimate(np.stack([accepted, np.ones_like(accepted)], 1))
    low, high = np.quantile(draws[1:], (0.025, 0.975))
    assert (high - low) / 2 == pytest.approx(1.96 * accepted.std() / 20, rel=0.1)


@pytest.fixture
def rows():
    """Every arm accepts one draft a block more than DFlash on each prompt; prompts differ a lot."""
    accepted = np.arange(10)[:, None] * [1, 0] + [0, 3]
    better = accepted + np.array([3, 0])
    counts = {arm: dict.fromkeys(DOMAINS, accepted if arm == "dflash" else better) for arm in SHIPPED}
    return summarise(counts)


def test_a_difference_is_paired_by_prompt(rows):
    mean = {row["arm"]: row for row in rows if row["domain"] == "mean"}
    assert mean["lilicorr"]["over_dflash"] == {"tau": 1.0, "low": 1.0, "high": 1.0}
    assert mean["lilicorr"]["high"] - mean["lilicorr"]["low"] > 0.5


def test_the_table_has_every_arm_and_domain(rows):
    table = markdown({"prompts": 10, "rows": rows}).splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in table[2 : 2 + len(SHIPPED)]] == list(SHIPPED)
    assert all(domain in table[0] for domain in DOMAINS)
    assert "| 3.50 [" in table[3]

"""The published numbers hold together: what the paper states follows from its rounded tables."""

from collections import Counter

import pytest

from harness.paper import consistency as oracle
from harness.paper import published
from harness.stats.estimate import Estimate, Missing
from harness.stats.headcost import place
from harness.stats.setting import AVERAGE, Setting

PAPER = published.results()


def test_wins_ties_and_trails_of_lilicorr():
    assert oracle.scores(PAPER) == {"Tables 5 and 6": (27, 6, 3), "Table 2": (36, 0, 0), "both": (63, 6, 3)}


@pytest.mark.parametrize(("target", "block"), [("Qwen3-8B", 8.87), ("Qwen3-4B", 5.88)])
def test_dflash_block_time(target, block):
    assert PAPER.get(place(target, "dflash"), "median_block_ms").value == pytest.approx(block, abs=0.01)


def test_head_costs_follow_from_tables_5_and_6():
    checks = list(oracle.head_costs(PAPER))
    assert Counter(c.quantity for c in checks) == {"head_ms": 8, "head_share_pct": 8}  # 4 arms, 2 targets
    for check in checks:
        tolerance = {"head_ms": 0.012, "head_share_pct": 0.2}[check.quantity]
        assert check.derived.value == pytest.approx(check.printed.value, abs=tolerance), check


def test_every_speedup_agrees_within_its_rounding():
    checks = list(oracle.speedups(PAPER))
    assert len(checks) == 9 * 2 * 2 * 5  # benchmarks, temperatures, targets, arms
    assert [c for c in checks if not c.agrees] == []


def test_every_average_agrees_within_its_rounding_and_the_inexact_ones_are_listed():
    """The mean of nine rounded rows may be off by half a unit itself: six printed averages show it."""
    checks = list(oracle.averages(PAPER))
    assert len(checks) == 26 + 30 + 20  # tau, throughput (AR too), speedup
    assert [c for c in checks if not c.agrees] == []
    assert {(c.setting.target, c.setting.arm, c.setting.temperature, c.quantity) for c in checks if not c.exact} == {
        ("Qwen3-4B", "ar", 0.0, "throughput"),
        ("Qwen3-4B", "dspark", 0.0, "throughput"),
        ("Qwen3-8B", "domino", 0.0, "throughput"),
        ("Qwen3-8B", "dflash", 1.0, "throughput"),
        ("Qwen3-4B", "dflash2-argmax", 1.0, "tau"),
        ("Qwen3-8B", "dflash2", 1.0, "speedup"),
    }


def test_the_decode_rules_change_agrees():
    checks = list(oracle.decode_rule(PAPER))
    assert len(checks) == 9
    assert [c for c in checks if not c.agrees] == []


def test_a_wrong_digit_is_found():
    """Plant one: 5.32 printed as 5.42 contradicts 795 / 149."""
    setting = Setting(target="Qwen3-8B", arm="lilicorr", benchmark="gsm8k", temperature=0.0)
    check = next(c for c in oracle.speedups(PAPER) if c.setting == setting)
    wrong = oracle.Check(
        setting=setting, quantity="speedup", printed=Estimate(5.42, 5.415, 5.425, 0, ""), derived=check.derived
    )
    assert check.agrees
    assert not wrong.agrees


def test_greedy_gains_over_dflash_are_those_stated():
    """Acceptance +13 to +19 %, throughput +6 to +14 %, to whole per cents."""
    for quantity, low, high in (("tau", 13, 19), ("throughput", 6, 14)):
        gains = [
            100 * (PAPER.get(s, quantity).value / PAPER.get(s.of("dflash"), quantity).value - 1)
            for s in PAPER.settings()
            if s.arm == "lilicorr" and s.temperature == 0 and s.benchmark in PAPER.benchmarks() and not s.category
        ]
        assert len(gains) == 18
        assert (round(min(gains)), round(max(gains))) == (low, high)


def test_tables_that_repeat_a_number_agree():
    """Seed means (10, 11) and AR rows (1, 7) stand in Tables 5 and 6 as well: first in, first kept, same digits."""
    seen = {}
    for setting, quantity, text, table in published._all():
        kept = seen.setdefault((setting, quantity), (float(text), table))
        assert kept[0] == float(text), (setting, quantity, kept, text, table)


def test_what_is_not_in_our_copy_says_so():
    found = PAPER.get(
        Setting(target="Qwen3-8B", arm="lilicorr", benchmark="speed-throughput-1k", temperature=0.0), "tau"
    )
    assert found == Missing(published.REASON)


def test_every_printed_number_names_its_table_and_estimator():
    methods = {e.method for e in PAPER.values.values() if isinstance(e, Estimate)}
    assert all("printed" in m for m in methods)
    assert any("bonus counted" in m for m in methods)


def test_arms_of_table_7_are_the_argmax_variants():
    at = Setting(target="Qwen3-8B", arm="lilicorr-argmax", benchmark="gsm8k", temperature=1.0)
    assert PAPER.get(at, "tau").value == 6.49
    assert PAPER.get(at.of("lilicorr"), "tau").value == 6.86
    assert PAPER.get(Setting(target="Qwen3-8B", arm="dflash", benchmark=AVERAGE, temperature=1.0), "tau").value == 4.57

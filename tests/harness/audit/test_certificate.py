"""Verdicts: what fails, what leaves the audit in doubt, what passes; and the page."""

import pytest
from scipy.stats import norm

from harness.audit.certificate import LARGEST_BIAS, Certificate, Sampled, Seeds, least_samples
from harness.audit.chisquare import POWER
from harness.audit.chisquare import Test as Result
from harness.audit.greedy import Divergence, Greedy
from harness.audit.page import page
from harness.audit.reference import ProbePlace

PLACE = ProbePlace(prompt="prose-1", after=7, ids=(1, 2), sure=0)


def result_of(p=0.5, df=20, samples=4000):
    return Result(name="T=1 c=4 token 2", samples=samples, df=df, statistic=20.0, p=p, tv=0.01)


def greedy(margin=None):
    found = () if margin is None else (Divergence(prompt="a", position=7, expected=1, seen=2, margin=margin),)
    return Greedy(concurrency=1, prompts=3, tokens=90, divergences=found, control=(), tolerance=1e-3)


def made(**changes):
    tests = changes.pop("tests", (result_of(), result_of()))
    sampled = Sampled(
        setting="T=1",
        concurrency=4,
        samples=4000,
        blocks=changes.pop("blocks", 7000),
        accepted=2500,
        tests=tests,
        tested=changes.pop("tested", 2000),
        rejected=2900,
    )
    fields = {
        "target": "mini", "arm": "lilicorr", "proposal": "sampled", "target_digest": "ab", "draft_digest": "cd",
        "weights_date": "2026-11-29T00:00:00+00:00", "date": "2026-11-30T00:00:00+00:00",
        "versions": {"sglang": "0.5.23", "specbench": "0.1.0"}, "attestation": {"device": "cpu", "dtype": "float32"},
        "false_alarm": 1e-3, "prompt_set": "mini", "server": (), "place": PLACE, "deep": PLACE,
        "greedy": (greedy(),), "sampled": (sampled,), "seeds": Seeds(repeats=True, differs=True),
    }  # fmt: skip
    return Certificate(**{**fields, **changes})


def test_a_clean_audit_passes_and_states_its_power():
    found = made()
    assert (found.verdict, found.reasons, found.samples) == ("pass", (), 4000)
    assert 0.03 < found.smallest_bias < 0.1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"greedy": (greedy(margin=0.5),)}, "differs from AR at token 7"),
        ({"tests": (result_of(p=1e-5), result_of())}, "after correction"),
        ({"seeds": Seeds(repeats=False, differs=True)}, "one seed"),
        ({"seeds": Seeds(repeats=True, differs=False)}, "two seeds"),
    ],
)
def test_what_fails(changes, reason):
    found = made(**changes)
    assert found.verdict == "fail"
    assert reason in found.reasons[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tested": 20}, "need 100 of each to be tested"),
        ({"blocks": 4020}, "20 rejections"),
        ({"tests": (result_of(samples=200),)}, "take 24,500 samples"),  # it sees 0.25: (0.25 / 0.1)^2 of 4,000
        ({"tests": (result_of(df=0),)}, "no answer came often enough"),
    ],
)
def test_what_is_inconclusive(changes, reason):
    found = made(**changes)
    assert found.verdict == "inconclusive"
    assert reason in found.reasons[0]


def test_a_near_tie_and_one_small_p_among_many_do_not_fail():
    tests = (result_of(p=2e-4), *(result_of() for _ in range(9)))  # 2e-4 times ten is above one in a thousand
    assert made(tests=tests, greedy=(greedy(margin=1e-6),)).verdict == "pass"


def test_the_page_says_what_was_asked():
    text = page(made(greedy=(greedy(margin=0.5),)))
    assert text.startswith("# mini / lilicorr (sampled): fail\n")
    assert "| 1 | 3 | 90 | 1 | 1 | 0 |" in text
    assert "tau 1.36: 2500 drafts accepted in 7000 blocks" in text


def test_the_least_samples_are_those_of_the_normal_approximation():
    """One degree of freedom: (z(level / 2) + z(power))^2 = n (2 tv)^2, with the far tail left out."""
    for level in (1e-3, 1e-6):
        z = norm.isf(level / 2) + norm.isf(1 - POWER)
        assert least_samples(level) == pytest.approx((z / (2 * LARGEST_BIAS)) ** 2, abs=1)

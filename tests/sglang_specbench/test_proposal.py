"""What an attested proposal is read from: the switch of the head that the worker really has."""

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from sglang_specbench.arms import ARMS
from sglang_specbench.serving.attest import _proposal

SWITCHED = [arm for arm in ARMS.values() if arm.switch]


def worker(arm, flag):
    return SimpleNamespace(**{arm.switch.part: object(), arm.switch.flag: flag})


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("arm", SWITCHED, ids=lambda arm: arm.name)
def test_the_worker_says_it_and_not_the_arm(arm, flag):
    assert _proposal(worker(arm, flag), arm) == ("sampled" if flag == arm.switch.sampled else "argmax")


def test_a_head_that_the_arm_does_not_have_is_not_overlooked():
    assert _proposal(worker(ARMS["lilicorr"], True), ARMS["dflash"]) == "sampled"


@pytest.mark.parametrize("arm", SWITCHED, ids=lambda arm: arm.name)
def test_a_worker_without_the_arms_head_proves_no_proposal(arm):
    seen = _proposal(SimpleNamespace(lilicorr=None, selector=None, _lilicorr_sampling_enabled=True), arm)
    assert seen == f"unknown: the worker has no {arm.switch.part}"


def test_no_worker_is_autoregressive():
    assert _proposal(None, ARMS["ar"]) == "none"

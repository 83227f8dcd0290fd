"""From servers to a certificate: seeds, attestation before and after, remote servers. The servers are made up.

Each is a Markov chain (test_examine) whose generator starts from the server's seed, or from nothing that repeats.
"""

import contextlib
from dataclasses import replace

import pytest

from harness.audit import audit as session
from harness.audit.reference import Design
from harness.serve.responses import ServerInfo
from sglang_specbench.arms import get_arm
from sglang_specbench.attestation import Attestation
from sglang_specbench.launch import Launch
from sglang_specbench.models import Model
from tests.harness.audit.test_examine import PROMPTS, Chain, V
from tests.harness.made import drafter, model

DESIGN = Design(samples=400, sure=2, greedy_tokens=8)


class Made:
    """A server of ``launch``; ``infos`` are its attestations in turn, the last one from then on."""

    url = "http://made.up"

    def __init__(self, launch, log, downgrades):
        self.launch, self.log, self.downgrades = launch, log, list(downgrades)

    def wait_ready(self, _):
        pass

    def text(self):
        return self.log

    def info(self):
        arm, launch = get_arm(self.launch.arm), self.launch
        seen = Attestation(
            plugin_version="0.1.0", sglang_version="0.5.23", arm=launch.arm,
            proposal=arm.worker_proposal(launch.proposal), device="cpu", dtype="float32",
            draft_model=(arm.architectures or ("",))[0], window=16,
            drafted=15, seed=launch.seed, target_digest="t", draft_digest="d" if launch.draft else "",
            patches=dict.fromkeys(arm.patches, "applied"),
        ).to_json()  # fmt: skip
        left = self.downgrades.pop(0) if self.downgrades else ()
        return ServerInfo(
            served_name="", sglang_version="0.5.23", attestation=seen, downgrades=left, verification="exact"
        )


@pytest.fixture
def audited(tmp_path, monkeypatch):
    """``audited(repeats=..., log=..., downgrades=..., remote=...)``: the certificate of lilicorr on such servers."""
    model(tmp_path, drafter("lilicorr"))
    target = Model(source="t", folder=tmp_path, digest="t", where="test")
    starts = iter(range(10**6, 2 * 10**6))

    def audit(repeats=True, sees_seed=True, log="", downgrades=(), remote=False):
        served = []

        @contextlib.contextmanager
        def serve(launch):
            served.append(launch)
            yield Made(launch, log, downgrades if launch.arm == "lilicorr" else ())

        @contextlib.asynccontextmanager
        async def probe(*_):
            seed = (served[-1].seed if sees_seed else 0) if repeats else next(starts)
            yield Chain(seed=seed)

        monkeypatch.setattr(session, "Probe", probe)
        launch = Launch(
            arm="ar", proposal="none", target="t", device="cpu", dtype="float32", port=1, seed=42, concurrency=4
        )
        subject = session.Subject(
            name="small", target=target, vocabulary=V, launch=launch, serve=serve, prompt_set="made up", remote=remote,
            start_timeout_s=1, request_timeout_s=1,
        )  # fmt: skip
        known = session.reference(subject, PROMPTS, DESIGN)
        found = session.audit(subject, "lilicorr", replace(target, digest="d"), known, DESIGN)
        return found, [x.seed for x in served[1:]]

    return audit


def test_three_servers_two_of_one_seed(audited):
    found, seeds = audited()
    assert seeds == [42, 43, 42]
    assert (found.seeds.repeats, found.seeds.differs) == (True, True)
    assert (found.attestation["dtype"], found.prompt_set, found.place.sure, found.deep.sure) == (
        "float32",
        "made up",
        0,
        2,
    )
    assert not [r for r in found.reasons if "p =" in r]


def test_a_server_that_does_not_repeat_fails(audited):
    found, _ = audited(repeats=False)
    assert found.verdict == "fail"
    assert "one seed on two fresh servers gave different samples" in found.reasons


def test_a_server_that_ignores_its_seed_fails(audited):
    found, _ = audited(sees_seed=False)
    assert "two seeds gave the same samples" in found.reasons


def test_a_remote_server_is_asked_once_and_nothing_is_said_of_seeds(audited):
    found, seeds = audited(remote=True, log="non-greedy verification is unavailable")
    assert (found.seeds, seeds) == (None, [42])


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"downgrades": [("eager head",)]}, "the server left a path: eager head"),
        ({"downgrades": [(), ("eager head",)]}, "the server left a path: eager head"),  # while it was audited
        ({"log": "DFLASH non-greedy verification is unavailable"}, "sampled requests are verified greedily"),
    ],
)
def test_what_is_not_what_it_should_be_gets_no_certificate(audited, made, reason):
    with pytest.raises(session.NotAttested, match=reason):
        audited(**made)

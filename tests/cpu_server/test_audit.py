"""The audit on real servers: it passes the honest ones and fails each of the four planted faults.

Mini models, 1,200 samples a server, four in flight. Odds of a false alarm on an honest server: 1 in 1,000 (Holm over
its tests), with a fixed seed. About three minutes on two idle cores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.audit import session, subjects
from harness.audit.certificate import Sampled
from harness.audit.chisquare import holm
from harness.audit.examine import Examiner
from harness.audit.reference import Design, Reference
from harness.sweep import load
from sglang_specbench.launch import STAND_IN

pytestmark = [pytest.mark.sglang, pytest.mark.slow]
DESIGN = Design(samples=1200)
HONEST: dict[str, Sampled] = {}  # arm -> its samples, for the comparison of acceptance


@dataclass(frozen=True)
class Bench:
    subject: session.Subject
    reference: Reference

    def sampled(self, arm: str) -> Sampled:
        """Samples of a fresh server of ``arm``, whatever it attests."""
        draft = subjects.arms(load("demo"), "mini", [arm], "cpu")[arm]
        launch = self.subject.arm(arm, draft, seed=42)
        with self.subject.serve(launch) as server:
            server.wait_ready(self.subject.start_timeout_s)
            return self.subject.on(
                server,
                lambda probe: Examiner(probe, self.reference, DESIGN).sampled(DESIGN.untruncated, 4, DESIGN.samples),
            )


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    subject = subjects.subject(load("demo"), "mini", subjects.here(tmp_path_factory.mktemp("audit")), remote=False)
    prompts = subjects.prompt_ids(Path(subject.target.path), "mini")
    return Bench(subject, session.reference(subject, prompts, DESIGN))


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def set_fault(name: str) -> None:
        monkeypatch.setenv("SPECBENCH_TEST_PATCH", f"faults:{name}")
        monkeypatch.setenv("PYTHONPATH", f"{STAND_IN}:{Path(__file__).parent}")

    return set_fault


@pytest.mark.parametrize("arm", ["dflash", "dspark"])
def test_an_honest_server_passes(bench: Bench, arm: str) -> None:
    HONEST[arm] = bench.sampled(arm)
    assert min(holm(HONEST[arm].tests)) > DESIGN.level
    assert HONEST[arm].accepted > 100


@pytest.mark.parametrize(
    ("fault", "arm"),
    [
        ("resample_from_p", "dspark"),
        ("accept_by_rank", "dflash"),
        ("q_not_the_sampled", "dspark"),
        ("verify_unless_likely", "dflash"),
    ],
)
def test_a_planted_fault_fails(bench: Bench, plant: Callable[[str], None], fault: str, arm: str) -> None:
    plant(fault)
    found = bench.sampled(arm)
    assert min(holm(found.tests)) < 1e-6
    assert HONEST[arm].tau is not None
    assert found.tau == pytest.approx(HONEST[arm].tau, rel=0.3)


def test_a_server_with_a_fault_gets_no_certificate(bench: Bench, plant: Callable[[str], None]) -> None:
    plant("resample_from_p")
    draft = subjects.arms(load("demo"), "mini", ["dflash"], "cpu")["dflash"]
    with pytest.raises(session.NotAttested, match="verification"):
        session.audit(bench.subject, "dflash", draft, bench.reference, DESIGN)

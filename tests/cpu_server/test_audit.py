"""The audit on real servers: it passes the honest ones and fails three of the four planted faults.

The fourth, verification that peeks at the drafted token, moves the law of the mini DSpark by a few hundredths: 2,400
samples did not show it (docs/exactness.md). It is caught in simulation, tests/harness/audit.

Mini models, 1,600 samples a server, 32 in flight. Odds of a false alarm on an honest server: 1 in 1,000 (Holm over
its tests), with a fixed seed. Some minutes on two idle cores.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness.audit import session, subjects
from harness.audit.certificate import Sampled
from harness.audit.chisquare import holm
from harness.audit.examine import Examiner
from harness.audit.reference import Design, Reference
from harness.elsewhere import Elsewhere
from harness.sweep import load
from sglang_specbench.launch import STAND_IN, Launch
from tests.cpu_server.servers import Nursery, free_port, serve

pytestmark = [pytest.mark.sglang, pytest.mark.slow]
DESIGN = Design(samples=1600)


@dataclass
class Bench:
    """The mini target, its reference, and servers of its arms with or without a planted fault."""

    nursery: Nursery
    folder: Path
    fault: str = ""
    honest: dict[str, Sampled] = field(default_factory=dict)  # arm -> its samples
    reference: Reference = field(init=False)

    def __post_init__(self) -> None:
        self.subject = subjects.subject(load("demo"), "mini", self.serve, remote=False)
        prompts = subjects.prompt_ids(Path(self.subject.target.path), "mini")
        self.reference = session.reference(self.subject, prompts, DESIGN)

    @contextlib.contextmanager
    def serve(self, launch: Launch) -> Iterator[Elsewhere]:
        planted = {"SPECBENCH_TEST_PATCH": f"faults:{self.fault}", "PYTHONPATH": f"{STAND_IN}:{Path(__file__).parent}"}
        launch = replace(launch, port=free_port())
        with serve(launch, self.folder / "log", self.nursery, planted if self.fault else {}):
            yield Elsewhere(f"http://127.0.0.1:{launch.port}")

    def sampled(self, arm: str, fault: str = "") -> Sampled:
        """Samples of a fresh server of ``arm``, whatever it attests."""
        self.fault = fault
        draft = subjects.arms(load("demo"), "mini", [arm], "cpu")[arm]
        with self.serve(self.subject.arm(arm, draft, seed=42)) as server:
            return self.subject.on(
                server,
                lambda probe: Examiner(probe, self.reference, DESIGN).sampled(
                    DESIGN.untruncated, DESIGN.bulk, DESIGN.samples
                ),
            )


@pytest.fixture(scope="module")
def bench(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(nursery, tmp_path_factory.mktemp("audit"))


@pytest.mark.parametrize("arm", ["dflash", "dspark"])
def test_an_honest_server_passes(bench: Bench, arm: str) -> None:
    found = bench.honest[arm] = bench.sampled(arm)
    assert min(holm(found.tests)) > DESIGN.level
    assert found.accepted > 100


@pytest.mark.parametrize(
    ("fault", "arm"),
    [
        ("resample_from_p", "dflash"),
        ("accept_by_rank", "dflash"),
        ("q_not_the_sampled", "dspark"),
    ],
)
def test_a_planted_fault_fails(bench: Bench, fault: str, arm: str) -> None:
    """After the honest servers of the same arms, whose acceptance length it hardly changes."""
    found = bench.sampled(arm, fault)
    assert min(holm(found.tests)) < DESIGN.level
    assert found.tau == pytest.approx(bench.honest[arm].tau, rel=0.3)


def test_a_server_with_a_fault_gets_no_certificate(bench: Bench) -> None:
    bench.fault = "resample_from_p"
    draft = subjects.arms(load("demo"), "mini", ["dflash"], "cpu")["dflash"]
    with pytest.raises(session.NotAttested, match="verification"):
        session.audit(bench.subject, "dflash", draft, bench.reference, DESIGN)

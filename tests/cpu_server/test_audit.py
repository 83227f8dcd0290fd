"""The audit on real servers: it passes the honest ones and fails each planted fault.

Mini models, 1,600 samples a server, 32 in flight. Odds of a false alarm on an honest server: 1 in 1,000 (Holm over
its tests), with a fixed seed. Some minutes on two idle cores.
"""

import pytest

from harness.audit import audit as session
from harness.audit.certificate import Sampled
from harness.audit.chisquare import holm
from harness.audit.reference import Design
from tests.cpu_server.audited import Bench
from tests.cpu_server.servers import Nursery

pytestmark = [pytest.mark.sglang, pytest.mark.slow]
DESIGN = Design(samples=1600)


@pytest.fixture(scope="module")
def bench(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(nursery, tmp_path_factory.mktemp("audit"), DESIGN)


@pytest.fixture(scope="module")
def honest(bench: Bench) -> dict[str, Sampled]:
    return {arm: bench.sampled(arm) for arm in ("dflash", "dspark")}


@pytest.mark.parametrize("arm", ["dflash", "dspark"])
def test_an_honest_server_passes(honest: dict[str, Sampled], arm: str) -> None:
    assert min(holm(honest[arm].tests)) > DESIGN.level
    assert honest[arm].accepted > 100


@pytest.mark.parametrize(
    ("fault", "arm", "moved"),
    [
        ("resample_from_p", "dflash", 0.15),
        ("accept_by_rank", "dflash", 0.25),
        ("q_not_the_sampled", "dspark", 0.15),
        ("verify_unless_likely", "dspark", 0.25),
    ],
)
def test_a_planted_fault_fails(bench: Bench, honest: dict[str, Sampled], fault: str, arm: str, moved: float) -> None:
    """And the acceptance length would not have told: between two prompt sets it moves by more."""
    found = bench.sampled(arm, fault)
    assert min(holm(found.tests)) < DESIGN.level
    assert found.tau == pytest.approx(honest[arm].tau, rel=moved)


def test_a_server_with_a_fault_gets_no_certificate(bench: Bench) -> None:
    bench.fault = "resample_from_p"
    draft = bench.draft("dflash")
    with pytest.raises(session.NotAttested, match="verification"):
        session.audit(bench.subject, "dflash", draft, bench.reference, DESIGN)

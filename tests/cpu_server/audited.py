"""Audited servers of the mini models, with and without a planted fault.

`python -m tests.cpu_server.audited` audits every planted fault with as many samples as `specbench audit` takes, and
writes results/planted_faults.json, from which docs/exactness.md has its table. About ten minutes on an idle core.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.audit import audit as session
from harness.audit import subjects
from harness.audit.certificate import Sampled
from harness.audit.chisquare import holm
from harness.audit.examine import Examiner
from harness.audit.reference import Design, Reference
from harness.serve.remote_server import Elsewhere
from harness.sweep.sweep import load
from sglang_specbench.launch import STAND_IN, Launch
from sglang_specbench.models import Model
from tests.cpu_server.servers import Nursery, free_port, serve

RESULTS = Path(__file__).parents[2] / "results" / "planted_faults.json"
# every fault where it can do harm, and last where it cannot: an argmax draft has no q and is a function of the prefix
PLANTED = (
    ("resample_from_p", "dflash"),
    ("resample_from_p", "dspark"),
    ("accept_by_rank", "dflash"),
    ("accept_by_rank", "dspark"),
    ("q_not_the_sampled", "dspark"),
    ("verify_unless_likely", "dspark"),
    ("verify_unless_likely", "dflash"),
)


@dataclass
class Bench:
    """The mini target, its reference, and servers of its arms with or without a planted fault."""

    nursery: Nursery
    folder: Path
    design: Design
    fault: str = ""
    sweep: str = "demo"
    reference: Reference = field(init=False)

    def __post_init__(self) -> None:
        self.subject = subjects.subject(load(self.sweep), "mini", self.serve, "mini", remote=False)
        self.reference = session.reference(self.subject, subjects.prompt_ids(self.subject)[0], self.design)

    @contextlib.contextmanager
    def serve(self, launch: Launch) -> Iterator[Elsewhere]:
        planted = {"SPECBENCH_TEST_PATCH": f"faults:{self.fault}", "PYTHONPATH": f"{STAND_IN}:{Path(__file__).parent}"}
        launch = replace(launch, port=free_port())
        with serve(launch, self.folder / "log", self.nursery, planted if self.fault else {}):
            yield Elsewhere(f"http://127.0.0.1:{launch.port}")

    def draft(self, arm: str) -> Model | None:
        """The drafter of ``arm`` in the sweep."""
        return subjects.arms(load(self.sweep), "mini", [arm], "cpu")[arm]

    def sampled(self, arm: str, fault: str = "") -> Sampled:
        """Samples of a fresh server of ``arm``, whatever it attests."""
        self.fault = fault
        draft = self.draft(arm)
        design = self.design
        with self.serve(self.subject.arm(arm, draft, seed=42)) as server:
            examiner = Examiner(self.reference, design, self.subject.launch.dtype, self.subject.launch.window - 1)
            batch = (False, design.untruncated, design.bulk, design.samples)
            return self.subject.on(server, lambda probe: examiner.sampled(probe, *batch))


def main() -> None:
    """Audit what of `PLANTED` is not in the file yet; writes as it goes."""
    lines = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else []
    tau = {line["arm"]: line["tau"] for line in lines if line["fault"] == "none"}
    with tempfile.TemporaryDirectory() as folder:
        launch = subjects.subject(load("demo"), "mini", subjects.here(Path(folder)), "mini", remote=False).launch
        nursery = Nursery(launch.environment(os.environ))
        bench = Bench(nursery, Path(folder), Design())
        for fault, arm in (*(("none", arm) for arm in dict.fromkeys(arm for _, arm in PLANTED)), *PLANTED):
            if any((line["fault"], line["arm"]) == (fault, arm) for line in lines):
                continue
            found = bench.sampled(arm, fault if fault != "none" else "")
            tau.setdefault(arm, found.tau)  # the honest one comes first
            p = {test.name: p for test, p in zip(found.tests, holm(found.tests), strict=True)}
            line = {"fault": fault, "arm": arm, "samples": found.samples, "tau": found.tau, "p": min(p.values())}
            lines.append(line | {"honest_tau": tau[arm], "by_test": p})
            print(line, flush=True)
            RESULTS.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
        nursery.close()


if __name__ == "__main__":
    main()

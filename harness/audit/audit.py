"""An audit from start to end: the target's server for the reference, then three servers for each arm.

Two servers get the same seed and one another, so that it shows whether seeds repeat and whether they differ. A server
that is not what it should be is never audited: `NotAttested`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from harness.audit.certificate import Certificate, Seeds
from harness.audit.examine import Examiner
from harness.audit.probe import Probe
from harness.audit.reference import Design, Reference, ask
from harness.audit.target_distribution import Prefix
from harness.measure.validity import departures
from harness.serve.remote_server import Elsewhere
from harness.serve.server import Server
from sglang_specbench import SGLANG_VERSION, __version__, checkpoint
from sglang_specbench.arms import get_arm
from sglang_specbench.attestation import mismatches
from sglang_specbench.launch import Launch
from sglang_specbench.models import Model
from sglang_specbench.refused_log import check_log

T = TypeVar("T")
Serve = Callable[[Launch], AbstractContextManager[Server | Elsewhere]]
SEEDS = (42, 43, 42)  # of the three servers of an arm
VERSIONS = {"sglang": SGLANG_VERSION, "specbench": __version__}  # a certificate holds for these only


class NotAttested(Exception):
    """The server does not run what it was started for; ``str()`` says in what it differs."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One target on one machine, and how to serve on it."""

    name: str
    target: Model
    vocabulary: int
    launch: Launch  # of the target's autoregressive server; arms replace what they need
    serve: Serve
    prompt_set: str
    skipped: int = 0  # prompts of the set that were too long to be asked
    remote: bool  # the servers are somebody else's: no restarts, so nothing about seeds
    start_timeout_s: float
    request_timeout_s: float
    seen: Callable[[int], object] = field(default=lambda _: None)  # called with the number of samples as they come

    def arm(self, name: str, draft: Model | None, seed: int) -> Launch:
        """The server of one arm, with its proposal at temperature 1."""
        proposal = get_arm(name).proposal(1)
        launch = replace(self.launch, arm=name, proposal=proposal, seed=seed)
        if draft is None:
            return launch
        window = checkpoint.window(draft.require(), get_arm(name))
        return replace(launch, draft=draft.path, window=window)

    def on(self, server: Server | Elsewhere, work: Callable[[Probe], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` with a client of ``server``."""

        async def run() -> T:
            async with Probe(server.url, self.request_timeout_s, self.seen) as probe:
                return await work(probe)

        return asyncio.run(run())


def reference(subject: Subject, prompts: Mapping[str, Prefix], design: Design) -> Reference:
    """Ask the target's autoregressive server. Raises `Failure` and `NotAttested`."""
    with subject.serve(subject.launch) as server:
        server.wait_ready(subject.start_timeout_s)
        _attested(subject, server, subject.launch, "")
        return subject.on(server, lambda probe: ask(probe, prompts, subject.vocabulary, design))


def audit(subject: Subject, arm: str, draft: Model | None, known: Reference, design: Design) -> Certificate:
    """Serve ``arm`` for the samples and twice more for the seeds, and judge it. Raises `Failure` and `NotAttested`."""
    digest = draft.digest if draft else ""
    prints = list[list[Prefix]]()
    for seed in SEEDS[:1] if subject.remote else SEEDS:
        launch = subject.arm(arm, draft, seed)
        with subject.serve(launch) as server:
            server.wait_ready(subject.start_timeout_s)
            seen = _attested(subject, server, launch, digest)
            examiner = Examiner(known, design, seen["dtype"], launch.window - 1)
            prints.append(subject.on(server, examiner.fingerprint))
            if len(prints) == 1:
                attestation = seen
                greedy, sampled = subject.on(server, examiner.examine)
            _attested(subject, server, launch, digest)  # it may have left a path since
    return Certificate(
        target=subject.name,
        arm=arm,
        proposal=get_arm(arm).proposal(1),
        target_digest=subject.target.digest,
        draft_digest=digest,
        weights_date=_weights_date(subject.target, draft),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=VERSIONS,
        attestation=attestation,
        server=subject.launch.extra,
        false_alarm=design.level,
        prompt_set=subject.prompt_set,
        skipped=subject.skipped,
        place=known.near.place,
        deep=known.deep.place,
        greedy=greedy,
        sampled=sampled,
        seeds=None if subject.remote else Seeds(repeats=prints[0] == prints[2], differs=prints[0] != prints[1]),
    )


def _attested(subject: Subject, server: Server | Elsewhere, launch: Launch, draft_digest: str) -> Mapping[str, Any]:
    """The server's attestation; `NotAttested` if it is not what ``launch`` asked for, or is so no longer."""
    info, arm = server.info(), get_arm(launch.arm)
    seen = info.attestation
    found = mismatches(
        seen,
        arm,
        launch.proposal,
        seed=launch.seed,
        target_digest=subject.target.digest,
        draft_digest=draft_digest,
        device=launch.device,
        dtype=launch.dtype,
        capacity=launch.concurrency,
        window=launch.window,
    )
    found += departures(info)
    found += [] if subject.remote else check_log(server.text(), arm, launch.proposal, launch.device)
    if found or seen is None:
        raise NotAttested("; ".join(found))
    return seen


def _weights_date(*models: Model | None) -> str:
    """Newest modification of any weights file on this machine, UTC."""
    files = [f for m in models if m and m.folder for f in m.folder.glob("*.safetensors")]
    newest = max(f.stat().st_mtime for f in files)
    return datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")

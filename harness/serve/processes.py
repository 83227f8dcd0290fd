"""No orphan, ever: which processes belong to a server, and their end.

A server is started as leader of a session of its own, so its schedulers and detokenizers are found by that session in
``/proc`` even after they rename themselves (SGLang's ``setproctitle`` overwrites their environment) or their leader is
gone. A small file remembers the leader by pid, start time and boot, three things that no later process shares; a
harness that was killed leaves it behind, and the next run of the folder ends what it names. Linux only, like SGLang.
"""

import contextlib
import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from harness.schema.failure import Failure
from sglang_specbench.config import from_dict
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import read_object

KILL_WAIT_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Leader:
    """The first process of a server's session."""

    pid: int
    start: int  # clock ticks after boot
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self:
        """The live process ``pid``."""
        status = _stat(pid)
        if status is None:
            raise Failure("server_died", "the server's process ended at once")
        return cls(pid=pid, start=status.start, boot=_boot())

    def members(self) -> list[int]:
        """Live processes of the session; empty if its number now belongs to somebody else."""
        if self.boot != _boot():
            return []
        found = {int(p.name): _stat(int(p.name)) for p in Path("/proc").iterdir() if p.name.isdigit()}
        ours = {pid: s for pid, s in found.items() if s and s.session == self.pid and s.start >= self.start}
        if self.pid in ours and ours[self.pid].start != self.start:
            return []
        return sorted(pid for pid, status in ours.items() if status.state != "Z")

    def end(self) -> list[int]:
        """SIGKILL every member and wait until none is left; the pids that were. `Failure` if one stays."""
        ended = set[int]()
        deadline = time.monotonic() + KILL_WAIT_S
        while members := self.members():
            ended.update(members)
            for pid in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise Failure("infrastructure", f"processes {members} of a server cannot be ended")
            time.sleep(0.05)
        return sorted(ended)


@dataclass(frozen=True)
class _Status:
    state: str
    session: int
    start: int


def remember(folder: Path, leader: Leader) -> Path:
    """Write ``folder``/PID.json; delete it when the server has ended."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{leader.pid}.json"
    path.write_text(json.dumps(asdict(leader)))
    return path


def end_leftovers(folder: Path) -> list[int]:
    """End what a killed harness left running, by the files that `remember` wrote; the pids that were.

    Only for the one process that holds the run's lock.
    """
    ended = list[int]()
    for path in sorted(folder.glob("*.json")):
        with contextlib.suppress(UserError):  # half-written: its harness died before the server started
            ended += from_dict(Leader, read_object(path), str(path)).end()
        path.unlink()
    return ended


def _stat(pid: int) -> _Status | None:
    """Fields of ``/proc/PID/stat`` (proc(5): 3 state, 6 session, 22 starttime); None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Status(state=fields[0], session=int(fields[3]), start=int(fields[19]))


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

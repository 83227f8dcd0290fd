"""One server process: started, waited for, watched, ended.

Knows processes, ports and logs; nothing of cells. Every way of going wrong is a `Failure` with the outcome that the
cell's file will carry. Readiness is asked of ``/ready``: SGLang's ``/health`` would generate a token.
"""

import ctypes
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.schema.failure import Failure
from harness.serve.client import says_ready, server_info
from harness.serve.processes import Leader, remember
from harness.serve.responses import ServerInfo
from sglang_specbench import toolkit
from sglang_specbench.launch import Launch

HOST = "127.0.0.1"
POLL_S = 0.2
# SGLang looks for SIGTERM every 5 s, drains, then gives its schedulers 15 s to return the GPU's memory
GRACE_S = {"cuda": 60.0, "cpu": 1.0}
HASTE_S = 5.0  # after Ctrl-C
TAIL_LINES, TAIL_CHARS = 30, 6000
CRASH = re.compile(r"Scheduler hit an exception|Fatal Python error|SIGQUIT received")
EXCEPTION = re.compile(r"^[\w.]*(?:Error|Exception)\b.*$", re.MULTILINE)
OUT_OF_MEMORY = re.compile(r"out of memory|OutOfMemoryError|Not enough memory|MemoryError", re.IGNORECASE)
PR_SET_PDEATHSIG = 1  # prctl(2)
_libc = ctypes.CDLL(None)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


class Server:
    """``launch`` as a process. Use as a context manager: leaving it ends every process of the server."""

    remote = False

    def __init__(self, launch: Launch, log: Path, records: Path) -> None:
        self.name = f"specbench-{secrets.token_hex(8)}"  # in /server_info: a stale server on the port has another
        self.launch = replace(launch, extra=(*launch.extra, "--served-model-name", self.name))
        self.argv = self.launch.argv
        self.env = self.launch.env
        self._log = log
        self._began = log.stat().st_size if log.exists() else 0  # an earlier try's text stays, and is not ours
        self._seen = self._began
        self._records = records
        self._grace_s = GRACE_S[launch.device]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.launch.port}"

    def __enter__(self) -> Self:
        """Start the process. Raises `Failure` (infrastructure) if the port is taken or the process cannot start."""
        _require_free(self.launch.port)
        self._log.parent.mkdir(exist_ok=True)
        base = toolkit.environment(os.environ) if self.launch.device == "cuda" else os.environ
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", *self.argv],  # -P: no module of the working folder stands in for theirs
                env=self.launch.environment(base),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        self._leader = Leader.of(self._process.pid)
        self._record = remember(self._records, self._leader)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """SIGTERM to the leader, time to drain if all is well, SIGKILL to whatever is left of the session."""
        try:
            self._process.terminate()
            self._process.wait(self._grace_s if kind is None else min(self._grace_s, HASTE_S))
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._leader.end()
            self._process.wait()
            self._record.unlink(missing_ok=True)

    def pids(self) -> list[int]:
        """Its live processes."""
        return self._leader.members()

    def give_up(self) -> None:
        """The server is not well: `__exit__` need not wait for it to drain."""
        self._grace_s = 0.0

    def wait_ready(self, timeout_s: float) -> None:
        """Return once ``/ready`` says so. `Failure`: server_died, oom, or timeout."""
        deadline = time.monotonic() + timeout_s
        while not says_ready(self.url):
            if failure := self.failure():
                raise failure
            if time.monotonic() > deadline:
                raise Failure("timeout", f"the server was not ready within {timeout_s:g} s")
            time.sleep(POLL_S)

    def info(self) -> ServerInfo:
        """``/server_info``. Raises `Failure`; infrastructure if another server answers on the port."""
        info = server_info(self.url)
        if info.served_name != self.name:
            raise Failure("infrastructure", f"another server answers on port {self.launch.port}: {info.served_name!r}")
        return info

    def failure(self) -> Failure | None:
        """What has gone wrong since the last look, from the process and the new lines of its log."""
        fresh = self._read(self._seen)
        self._seen += len(fresh)
        text, code = fresh.decode(errors="replace"), self._process.poll()
        if code is not None:
            reason = f"the server {_exit_text(code)}"
        elif CRASH.search(text):
            reason = "the server crashed"
        else:
            return None
        outcome = "oom" if OUT_OF_MEMORY.search(self.tail()) else "server_died"
        return Failure(outcome, reason + self._cause(killed=code is not None and code < 0))

    def text(self) -> str:
        """All that this process has printed."""
        return self._read(self._began).decode(errors="replace")

    def tail(self) -> str:
        """The last lines of it, bounded."""
        return "\n".join(self.text()[-TAIL_CHARS:].splitlines()[-TAIL_LINES:])

    def _cause(self, killed: bool) -> str:
        """The first exception of a crash, or the last one before an exit; SGLang survives the others that it prints."""
        said = self.text()
        if crash := CRASH.search(said):
            found = EXCEPTION.findall(said, crash.start())[:1]
        elif killed:
            found = []
        else:
            found = EXCEPTION.findall(said)[-1:]
        return f": {found[0][:300]}" if found else ""

    def _read(self, start: int) -> bytes:
        if not self._log.exists():
            return b""
        with self._log.open("rb") as handle:
            handle.seek(start)
            return handle.read()


def _die_with_parent() -> None:
    """In the child before exec: the kernel ends the server if the harness is killed outright."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise Failure("infrastructure", f"port {port} is taken: {error.strerror}") from None


def _exit_text(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

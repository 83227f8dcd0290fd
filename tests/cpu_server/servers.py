"""Real SGLang servers on the CPU: started from a `Launch`, spoken to over HTTP, always ended."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglang_specbench.launch import Launch

START_S, STOP_S = 600, 60
Start = Callable[[Launch, dict[str, str], Path], int]  # launch, its whole environment, log file -> pid of the leader


@dataclass(frozen=True)
class Server:
    """A running server: ``get`` and ``generate`` speak HTTP, ``log`` is what it has printed so far."""

    launch: Launch
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.launch.port}{path}", timeout=60) as answer:
            return json.load(answer)

    def generate(
        self, prompts: list[list[int]], temperature: float, tokens: int = 24, **sampling: float
    ) -> list[dict[str, Any]]:
        """Answers to all ``prompts``, sent as one batch (all in flight together)."""
        params = {"temperature": temperature, "max_new_tokens": tokens, "ignore_eos": True, **sampling}
        body = json.dumps({"input_ids": prompts, "sampling_params": params}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.launch.port}/generate", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=600) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found


@contextlib.contextmanager
def serve(launch: Launch, log_file: Path, start: Start, extra_env: dict[str, str] | None = None) -> Iterator[Server]:
    """Start ``launch``, wait until it is ready, end its processes afterwards."""
    leader = start(launch, launch.environment(os.environ) | (extra_env or {}), log_file)
    try:
        _wait_ready(launch.port, leader, log_file)
        yield Server(launch, log_file)
    finally:
        _end(leader)


def start_ordinarily(launch: Launch, env: dict[str, str], log_file: Path) -> int:
    """``python -m sglang.launch_server``, in a session of its own."""
    output = (os.POSIX_SPAWN_OPEN, 1, str(log_file), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    actions = [output, (os.POSIX_SPAWN_DUP2, 1, 2)]
    return os.posix_spawn(sys.executable, [sys.executable, *launch.argv], env, file_actions=actions, setsid=True)


class Nursery:
    """``nursery.py`` as a process; called, it starts a server (see there)."""

    def __init__(self, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nursery.py"))],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._answer("ready")

    def __call__(self, launch: Launch, env: dict[str, str], log_file: Path) -> int:
        assert self._process.stdin is not None
        order = {"argv": launch.argv[2:], "env": env, "log": str(log_file)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._answer())

    def _answer(self, wanted: str = "") -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:  # what SGLang prints while it is imported comes first
            if line.strip() == wanted or (not wanted and line.strip().isdigit()):
                return line
        raise AssertionError("the nursery died: run tests/cpu_server/nursery.py by hand")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(STOP_S)
        self._process.stdout.close()


def _alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):  # not our child, but the nursery's, which leaves no zombies
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def _wait_ready(port: int, leader: int, log_file: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and _alive(leader):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
            return
        time.sleep(0.3)
    text = log_file.read_text(errors="replace") if log_file.exists() else ""
    raise AssertionError(f"server not ready:\n{text[-6000:]}")


def _end(leader: int) -> None:
    """SIGKILL at once: nothing of a test server is worth draining."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    deadline = time.monotonic() + STOP_S
    while _alive(leader) and time.monotonic() < deadline:
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

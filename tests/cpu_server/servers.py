"""Real SGLang servers on the CPU: tiny checkpoints, started through `Launch`, always ended."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglang_specbench.launch import Launch

START_S, STOP_S = 600, 60


@dataclass(frozen=True)
class Server:
    """A running server: ``get`` and ``generate`` speak HTTP, ``log`` is what it has printed so far."""

    launch: Launch
    log_file: Path
    started_s: float

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
def serve(launch: Launch, log_file: Path, extra_env: dict[str, str] | None = None) -> Iterator[Server]:
    """Start ``launch``, wait until it is ready, end its process group afterwards."""
    began = time.monotonic()
    env = launch.environment(os.environ) | (extra_env or {})
    with log_file.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *launch.argv], env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait_ready(launch.port, process, log_file)
        yield Server(launch, log_file, time.monotonic() - began)
    finally:
        _end(process)


def _wait_ready(port: int, process: "subprocess.Popen[bytes]", log_file: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
            return
        time.sleep(0.3)
    raise AssertionError(f"server not ready:\n{log_file.read_text(errors='replace')[-6000:]}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

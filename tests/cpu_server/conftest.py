"""Tiny checkpoints, launches on them, and what starts them: made once a session."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sglang_specbench.arms import ARMS
from sglang_specbench.launch import Launch
from tests.cpu_server.servers import Nursery, free_port


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folder of the target and of each drafter, by the name that the arm table uses."""
    from tests.cpu_server.checkpoints import make_all  # imports torch

    return make_all(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(scope="session")
def launch_of(checkpoints: dict[str, Path]) -> Callable[..., Launch]:
    """``launch_of(arm, proposal, seed=...)``: a CPU launch on the tiny checkpoints."""

    def make(arm: str, proposal: str, seed: int = 42) -> Launch:
        name = ARMS[arm].checkpoint
        return Launch(
            arm=arm,
            proposal=proposal,  # type: ignore[arg-type]
            target=str(checkpoints["target"]),
            draft=str(checkpoints[name]) if name else None,
            device="cpu",
            dtype="float32",
            port=free_port(),
            seed=seed,
            concurrency=4,
            context_length=512,
        )

    return make


@pytest.fixture(scope="session")
def nursery(launch_of: Callable[..., Launch]) -> Iterator[Nursery]:
    """Starts servers by forking one process that has SGLang imported."""
    opened = Nursery(launch_of("ar", "none").environment(os.environ))
    yield opened
    opened.close()

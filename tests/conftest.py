"""Markers that depend on the machine, and the golden-file fixture."""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("busy", deadline=None)  # a machine at work is no fault of the code
settings.load_profile("busy")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two shared cores; see Makefile
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ROOT = Path(__file__).resolve().parent.parent


def _cuda() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


PROBES = {
    "torch": (lambda: importlib.util.find_spec("torch") is not None, "torch is not installed (extra train)"),
    "sglang": (lambda: importlib.util.find_spec("sglang") is not None, "sglang is not installed (extra serve)"),
    "gpu": (_cuda, "no CUDA device"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files instead of comparing")
    parser.addoption("--long", action="store_true", help="also tests that are too long for CI")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("long") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="a long form: pytest --long"))
    for marker, (probe, reason) in PROBES.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and not probe():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: text equals tests/golden/NAME byte for byte."""

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing: run make golden and read the diff"
        assert text == path.read_text(encoding="utf-8")

    return check

"""The tiny target, the stand-in server and its run, as the tests of measuring have them."""

import pytest

from tests.faults.command import Command
from tests.harness.measure.conftest import desk, fake, files, planned, run  # noqa: F401


@pytest.fixture
def specbench(monkeypatch, tmp_path, capsys):
    """``specbench(*args)``: the command in this process, as the shell sees it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return Command(capsys)

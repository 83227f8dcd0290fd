"""Whatever a command raises ends as one line and the exit code that the docs promise."""

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from sglang_specbench import cli
from sglang_specbench.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
CODE = "from sglang_specbench.cli import main; main()"


def raising(monkeypatch, error):
    own = typer.Typer(add_completion=False)

    @own.command()
    def plan(_: str):
        raise error

    monkeypatch.setattr(cli, "_load", lambda _: typer.main.get_command(own))


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyError("x"), 70, "internal error: KeyError: 'x' (a fault of ours, please report it; its trace: "),
        (RecursionError("deep"), 70, "internal error: RecursionError: deep"),
        (UserError("f.toml: k", "write it"), 2, "specbench: f.toml: k (write it)"),
        (UserError("two\nlines \x1b[31m", "r", 4), 4, "specbench: two lines \\x1b[31m (r)"),
        (OSError(errno.ENOSPC, "No space left on device"), 5, "output: No space left on device (make room"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 2, "/x: Permission denied (check the path"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "d"), 2, "d: Is a directory"),
        (BrokenPipeError(), 141, ""),
        (KeyboardInterrupt(), 130, ""),
        (asyncio.CancelledError(), 130, ""),
        (SystemExit(3), 3, ""),
        (typer.Exit(1), 1, ""),
    ],
)
def test_each_way_out(specbench, monkeypatch, error, code, text):
    monkeypatch.setattr("sglang_specbench.way_out._close_stdout", lambda: None)
    raising(monkeypatch, error)
    done = specbench("plan", "x")
    assert done.code == code
    assert text in done.err
    assert done.err.count("\n") == bool(text)


def test_a_fault_of_ours_leaves_its_trace_in_a_file(specbench, monkeypatch, tmp_path):
    raising(monkeypatch, ValueError("ours"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = specbench("plan", "secret").err.rpartition("its trace: ")[2].strip().rstrip(")")
    text = Path(place).read_text()
    assert "raise error" in text
    assert "ValueError: ours" in text
    assert "secret" not in text  # arguments may hold passwords
    assert Path(place).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("args", [("arms",), ("tables", "paper", "--table", "1")])
def test_a_reader_who_leaves_is_no_regression(args):
    """Rich would exit with 1, which means that something was found."""
    command = subprocess.Popen([sys.executable, "-c", CODE, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    command.stdout.close()
    _, text = command.communicate(timeout=120)
    assert (command.returncode, text) == (141, b"")


def test_a_full_output_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", CODE, "arms"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 5
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_any_text_can_be_printed_anywhere():
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", CODE, "plan", "ü\udcff"], env=env, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_no_input_of_an_action_is_text_of_a_shell_line():
    yaml = pytest.importorskip("yaml")
    for path in (ROOT / ".github").rglob("*.yml"):
        loaded = yaml.safe_load(path.read_text())
        steps = (
            loaded["runs"]["steps"] if "runs" in loaded else [s for j in loaded["jobs"].values() for s in j["steps"]]
        )
        shell = " ".join(step.get("run", "") for step in steps)
        assert "${{" not in shell, path
        assert "'sglang-specbench" not in shell, path  # the name on the index may be anybody's

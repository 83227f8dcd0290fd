"""The command line: frozen, quick to start, one line for a user's mistake."""

import importlib.metadata
import subprocess
import sys
import time

import pytest
import typer

from sglang_specbench import cli
from sglang_specbench.cli import COMMANDS, _load


def specbench(*args, **kwargs):
    code = "from sglang_specbench.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, **kwargs)


def test_help_starts_in_under_half_a_second():
    specbench("--help")  # byte-compile once
    times = []
    for _ in range(3):
        start = time.perf_counter()
        assert specbench("--help").returncode == 0
        times.append(time.perf_counter() - start)
    assert min(times) < 0.5  # the best of three: a loaded machine slows some, a heavy import slows all


def test_unknown_command_names_the_nearest():
    done = specbench("tabels")
    assert done.returncode == 2
    assert done.stderr.strip() == "specbench: unknown command 'tabels' (did you mean 'tables'?)"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["plan", "demo", "--nosuch"], "specbench: No such option: --nosuch"),
        (["plan"], "specbench: Missing argument 'sweep'"),
        (["plan", "demo", "other"], "specbench: Got unexpected extra argument"),
        (["gate", "run", "--metric", "speed"], "specbench: Invalid value for '--metric': "),
        (["--nosuch"], "specbench: No such option: --nosuch"),
        (["data", "nosuch"], "specbench: No such command 'nosuch'"),
    ],
)
def test_a_wrong_call_is_one_line_with_the_help_to_see(args, words):
    done = specbench(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(words)
    command = " ".join(["specbench", *(args[:1] if "-" not in args[0] else [])])
    assert done.stderr.endswith(f" (see {command} --help)\n")
    assert done.stderr.count("\n") == 1


def test_a_group_without_a_command_shows_its_help():
    for args in ([], ["data"]):
        done = specbench(*args)
        assert (done.stdout + done.stderr).startswith("Usage: specbench")
        assert "Commands:" in done.stdout + done.stderr


def test_exit_codes_and_ctrl_c_reach_the_shell(monkeypatch):
    for raised, code in ((typer.Exit(3), 3), (KeyboardInterrupt(), 130)):
        monkeypatch.setattr(cli, "_load", lambda _, raised=raised: command_that_raises(raised))
        monkeypatch.setattr(sys, "argv", ["specbench", "plan"])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert left.value.code == code


def command_that_raises(error):
    own = typer.Typer(add_completion=False)

    @own.command()
    def plan():
        raise error

    return typer.main.get_command(own)


def test_a_command_without_its_extra_names_it():
    code = "import sys; sys.modules['torch'] = None; from sglang_specbench.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "export", "a", "b"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == "specbench: export needs torch (pip install 'sglang-specbench[train]')"


def test_every_command_has_an_entry_point():
    names = {e.name for e in importlib.metadata.entry_points(group="specbench.commands")}
    assert names == set(COMMANDS)


def test_commands_and_flags_are_frozen(golden):
    """A new flag is a promise: it changes this file in the same commit, with its reason in the CHANGELOG."""
    lines = []
    for name in COMMANDS:
        lines += _flags(name, _load(name))
    golden("flags.txt", "\n".join(lines) + "\n")


def _flags(path, command):
    own = " ".join(sorted(o for p in command.params for o in (*p.opts, *p.secondary_opts) if o != "--help"))
    lines = [f"{path}: {own}"]
    for sub in getattr(command, "commands", {}).values():
        lines += _flags(f"{path} {sub.name}", sub)
    return lines


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name):
    command = _load(name)
    for part in [command, *getattr(command, "commands", {}).values()]:
        assert all(getattr(p, "help", None) for p in part.params if p.name != "help"), (
            f"{part.name}: an option has no help"
        )

"""The command line: frozen, quick to start, one line for a user's mistake."""

import importlib.metadata
import subprocess
import sys
import time

import pytest

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
    assert done.stderr.strip() == "specbench: specbench: unknown command 'tabels' (did you mean 'tables'?)"


def test_a_command_without_its_extra_names_it():
    code = "import sys; sys.modules['torch'] = None; from sglang_specbench.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "export", "a", "b"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == "specbench: specbench export needs torch (pip install 'sglang-specbench[train]')"


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

"""`specbench` called in this process, and what must hold of every call whatever it is given."""

import sys
from dataclasses import dataclass

import pytest

from sglang_specbench import cli

# what docs/cli.md promises: done, said no, the user can fix it, inconclusive, invalid, infrastructure
PROMISED = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


class Command:
    def __init__(self, capsys):
        self._capsys = capsys

    def __call__(self, *args):
        self._capsys.readouterr()
        old = sys.argv
        sys.argv = ["specbench", *map(str, args)]
        try:
            with pytest.raises(SystemExit) as left:
                cli.main()
        finally:
            sys.argv = old
        said = self._capsys.readouterr()
        return Done(left.value.code or 0, said.out, said.err)

    def refused(self, *args):
        """A user's fault: one line, exit code 2."""
        done = self(*args)
        assert done.code == 2, done
        assert done.err.startswith("specbench: "), done
        assert done.err.count("\n") == 1, done
        assert "Traceback" not in done.out + done.err
        return done.err

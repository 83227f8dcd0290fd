"""Registration in processes that are no business of ours, and in ones that are."""

import subprocess
import sys

import pytest

from sglang_specbench.launch import CONFIG_ENV

_QUIET = """
import sys
from sglang_specbench.plugin import register
register()
assert not {"sglang", "torch"} & set(sys.modules), sorted(sys.modules)
"""


def test_does_nothing_without_a_configuration() -> None:
    done = subprocess.run([sys.executable, "-c", _QUIET], env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_broken_configuration_is_not_swallowed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang_specbench.errors import UserError
    from sglang_specbench.plugin import register

    monkeypatch.setenv(CONFIG_ENV, '{"arm": "ar"}')
    with pytest.raises(UserError, match="missing key"):
        register()

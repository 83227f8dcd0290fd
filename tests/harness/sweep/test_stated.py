"""Arguments that would override what the sweep states are refused before anything runs."""

import subprocess
import sys

import pytest

from harness.sweep.stated import OWNED, STATED, refuse_overrides
from harness.sweep.sweep import load
from sglang_specbench.errors import UserError
from sglang_specbench.launch import Launch
from tests.harness.made import sweep_text, toy

NAMES = """
import argparse
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
print(*(flag for action in parser._actions for flag in action.option_strings))
"""


@pytest.mark.parametrize("flag", STATED)
def test_each_stated_argument_is_refused_naming_file_key_and_remedy(tmp_path, flag):
    sweep = tmp_path / "s.toml"
    extra = f'[server]\nargs = ["--attention-backend", "fa3", "{flag}", "bfloat16"]\n[[panel]]'
    sweep.write_text(sweep_text(toy(tmp_path)).replace("[[panel]]", extra))
    with pytest.raises(UserError) as caught:
        load(sweep)
    assert f"s.toml: server.args: '{flag}' overrides what {STATED[flag]!r} states" in str(caught.value)


@pytest.mark.parametrize("text", ["--dtype=bfloat16", "--dty", "--context-len=4096", "--random-s", "--model=x"])
def test_the_other_spellings_that_sglang_takes_are_refused_too(text):
    with pytest.raises(UserError, match="overrides what"):
        refuse_overrides([text], "s.toml")


@pytest.mark.parametrize("flag", OWNED)
def test_what_the_program_itself_sets_is_refused(flag):
    with pytest.raises(UserError, match="specbench's own to set"):
        refuse_overrides([flag, "x"], "s.toml")


def test_what_no_field_states_is_passed_on():
    refuse_overrides(["--attention-backend", "fa3", "--tp-size", "2", "-h", "--mem-fraction-static=0.7"], "s.toml")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_argument_of_a_launch_is_stated_owned_or_free_to_set(device):
    """A new flag of `launch` that comes from a cell's field must enter the table."""
    made = Launch(arm="domino", proposal="argmax", target="t", draft="d", device=device, port=1, seed=2)
    flags = {text for text in made.argv if text.startswith("--")}
    free = {
        "--page-size", "--min-free-slots-delay", "--disable-radix-cache", "--enable-metrics", "--skip-server-warmup",
        "--attention-backend", "--mem-fraction-static", "--chunked-prefill-size", "--sampling-backend",
        "--sleep-on-idle", "--disable-overlap-schedule", "--max-total-tokens", "--speculative-draft-attention-backend",
    }  # fmt: skip
    assert flags - free <= {*STATED, *OWNED}


@pytest.mark.sglang
@pytest.mark.slow
def test_the_names_are_sglangs_and_no_other_argument_is_caught_by_them():
    """In a process of its own: SGLang decides once, at import, what it runs on."""
    known = subprocess.check_output([sys.executable, "-c", NAMES], text=True).split()
    assert set(known) >= {*STATED, *OWNED}
    for flag in (flag for flag in known if flag not in STATED and flag not in OWNED):
        refuse_overrides([flag], "s.toml")

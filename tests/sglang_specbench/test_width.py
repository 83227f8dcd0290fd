"""The width of a block is the checkpoint's, in command line, attestation and proof."""

import pytest

from sglang_specbench import checkpoint, width
from sglang_specbench.arms import ARMS
from sglang_specbench.launch import Launch
from tests.harness.made import drafter, model

BLOCK = [arm for arm in ARMS.values() if arm.head]


@pytest.mark.parametrize("arm", BLOCK, ids=lambda arm: arm.name)
@pytest.mark.parametrize("window", [2, 7, 8, 16, 32])
def test_config_window_and_command_line_say_the_same(tmp_path, arm, window):
    """Written out: DFLASH states the window, DSPARK the drafted tokens."""
    size = {"DFLASH": window, "DSPARK": window - 1}[arm.algorithm]
    folder = model(tmp_path / "d", drafter(arm.checkpoint, block_size=size))
    checkpoint.check(folder, arm, None)
    assert checkpoint.window(folder, arm) == window
    argv = Launch(arm=arm.name, proposal="argmax", target="T", draft="D", port=1, seed=1, window=window).argv
    flag = {"DFLASH": "--speculative-num-draft-tokens", "DSPARK": "--speculative-dspark-block-size"}[arm.algorithm]
    assert argv.count(flag) == 1
    assert argv[argv.index(flag) + 1] == str(size)


@pytest.mark.parametrize("arm", [a for a in ARMS.values() if not a.head], ids=lambda arm: arm.name)
def test_arms_without_a_block_head_have_no_width(arm):
    assert width.flags(arm, 8) == ()
    assert width.window_of({"block_size": 8}, arm) is None

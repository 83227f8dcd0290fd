"""How wide a drafter's block is: its checkpoint says so; while that is not here, the paper's width is taken.

A *window* is what the target verifies at once: the anchor and every drafted token. ``block_size`` in a config.json is
the window for DFLASH and one less for DSPARK, where the anchor's row drafts, too (SGLang 0.5.23
``arg_groups/speculative_hook.py``).
"""

from collections.abc import Mapping
from typing import Any

from sglang_specbench.arms import WINDOW, Arm
from sglang_specbench.checkpoint_kind import setting

WIDEST = 32  # places kept of a histogram; SGLang itself has no limit, and no public drafter is wider than 16
FLAGS = {"DFLASH": "--speculative-num-draft-tokens", "DSPARK": "--speculative-dspark-block-size"}


def block_size(arm: Arm, window: int) -> int:
    """What config.json and command line of ``arm`` say for a ``window``."""
    return window - (arm.algorithm == "DSPARK")


def window_of(config: Mapping[str, Any], arm: Arm) -> int | None:
    """Positions that ``arm`` verifies with this config.json; None without a block head, or without a fit size."""
    found = setting(config, "block_size")
    if not arm.head or not isinstance(found, int) or isinstance(found, bool):
        return None
    window = found + (arm.algorithm == "DSPARK")
    return window if 2 <= window <= WIDEST else None


def flags(arm: Arm, window: int = WINDOW) -> tuple[str, ...]:
    """The server arguments that state ``window``; none for an arm without a block head."""
    return (FLAGS[arm.algorithm], str(block_size(arm, window))) if arm.head else ()

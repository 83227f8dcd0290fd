"""What a plan needs to know of this machine: model folders and digests, prompt-set versions, the device.

The reading half of planning; `plan.expand` is the pure half.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.models import Model
from harness.prompt_set import PromptSet
from harness.sweep import Sweep


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Resolved names of one sweep."""

    device: str  # cuda | cpu
    dtype: str  # bfloat16 | float32
    targets: Mapping[str, Model]
    drafters: Mapping[tuple[str, str], Model]  # (target, checkpoint)
    renders: Mapping[str, str]  # target -> recipe and digest of tokenizer + chat template
    sets: Mapping[str, PromptSet]
    missing_sets: Mapping[str, str]  # set -> reason and command


def resolve(sweep: Sweep, data_dirs: Sequence[Path] = ()) -> Inputs:
    """Look up everything that ``sweep`` names. Reads files; no network.

    Raises `UserError` for a missing folder or a checkpoint that its arm cannot load; a hub id that was not
    downloaded and a prompt set that is not here are reported in the result.
    """
    raise NotImplementedError

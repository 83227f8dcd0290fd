"""DFlash's head: none. The frozen target head reads each slot's hidden state, and the argmax is committed.

There is no sampled mode, in SGLang 0.5.23 or here: independent samples of neighbouring slots do not fit together.
Shapes: see `proposal`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from drafters.model.config import DrafterConfig
from drafters.model.proposal import Drafting, Proposal


@dataclass(frozen=True)
class Settings:
    """DFlash adds nothing to the backbone's config."""

    widths: ClassVar[tuple[str, ...]] = ()  # see `training.scaled_recipes`
    architecture: ClassVar[str] = "DFlashDraftModel"
    counts_anchor: ClassVar[bool] = True
    anchor_predicts: ClassVar[bool] = False

    @classmethod
    def from_json(cls, _config: Mapping[str, Any]) -> "Settings":
        return cls()

    def to_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Keys of the top level and of ``dflash_config``."""
        return {}, {}


class Head(nn.Module):
    BRANCHES: ClassVar[dict[str, str]] = {}

    def __init__(self, _config: DrafterConfig) -> None:
        super().__init__()

    def propose(self, drafting: Drafting) -> Proposal:
        """The argmax of every slot, at any temperature."""
        return Proposal((drafting.h_BDH @ drafting.head_VH.T).argmax(-1))

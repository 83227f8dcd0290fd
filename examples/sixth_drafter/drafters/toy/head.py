"""Toy's head: z = h + U V h in front of the frozen target head."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from drafters.model.config import DrafterConfig
from drafters.model.proposal import Drafting, Proposal


@dataclass(frozen=True, kw_only=True)
class Settings:
    toy_rank: int = 8  # columns of U, rows of V

    widths: ClassVar[tuple[str, ...]] = ("toy_rank",)  # see `training.scaled_recipes`
    architecture: ClassVar[str] = "ToyDraftModel"
    counts_anchor: ClassVar[bool] = True  # block_size counts the anchor's slot
    anchor_predicts: ClassVar[bool] = False

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> "Settings":
        return cls(toy_rank=config["dflash_config"]["toy_rank"])

    def to_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Keys of the top level and of ``dflash_config``."""
        return {}, {"toy_rank": self.toy_rank}


class Head(nn.Module):
    """U is zero at first, so training starts as DFlash."""

    BRANCHES: ClassVar[dict[str, str]] = {}

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.toy_down = nn.Linear(config.hidden_size, config.head.toy_rank, bias=False)
        self.toy_up = nn.Linear(config.head.toy_rank, config.hidden_size, bias=False)
        nn.init.zeros_(self.toy_up.weight)

    def correct(self, h_BDH: Tensor) -> Tensor:
        return h_BDH + self.toy_up(self.toy_down(h_BDH))

    def propose(self, drafting: Drafting) -> Proposal:
        return Proposal((self.correct(drafting.h_BDH) @ drafting.head_VH.T).argmax(-1))

"""Which trained drafter a config.json describes, by the rows of ``ARMS``: the one reader of that question.

SGLang tells drafters apart by ``architectures[0]`` and, within one architecture, by settings (Domino is a
DFlashDraftModel with a ``projector_type``); an arm's row names both.
"""

from collections.abc import Mapping
from typing import Any

from sglang_specbench.arms import ARMS, Arm


def setting(config: Mapping[str, Any], name: str) -> Any:
    """``name`` from ``dflash_config`` first, then from the top level, as SGLang's parser reads it; None if absent."""
    return (config.get("dflash_config") or {}).get(name, config.get(name))


def rope_theta(config: Mapping[str, Any]) -> Any:
    """The base of the rotary angles, from the top level or where transformers 5 nests it; None if absent."""
    return config.get("rope_theta", (config.get("rope_parameters") or {}).get("rope_theta"))


def block_drafters() -> tuple[str, ...]:
    """Names of the checkpoints that this program trains and checks: those of the arms with a block head."""
    return tuple(dict.fromkeys(arm.checkpoint for arm in ARMS.values() if arm.head))


def row(checkpoint: str) -> Arm:
    """The first arm that loads ``checkpoint``; its marks, sizes and tensors hold for all arms that do."""
    return next(arm for arm in ARMS.values() if arm.checkpoint == checkpoint)


def kind(config: Mapping[str, Any]) -> str:
    """The checkpoint (``dflash`` ... ``lilicorr-conv``) that ``config`` describes; "" for no block drafter of ours."""
    architecture = (config.get("architectures") or [""])[0]
    fitting = [
        arm
        for arm in map(row, block_drafters())
        if architecture in arm.architectures and all(_fits(config, *mark) for mark in arm.marks.items())
    ]
    return max(fitting, key=lambda arm: len(arm.marks)).checkpoint if fitting else ""


def _fits(config: Mapping[str, Any], name: str, wanted: str | bool) -> bool:
    found = setting(config, name)
    return bool(found) if wanted is True else bool(found == wanted)

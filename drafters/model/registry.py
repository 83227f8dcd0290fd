"""Which folder holds an arm's drafter, and the settings it is trained with.

Knows names: an arm is a row of ``ARMS`` with a head, and a folder of this package with ``head.py`` (``Head``,
``Settings``), ``loss.py`` (``loss``, ``Weights``), ``tensors.py`` (``head_tensors``), ``config_checks.py``
(``head_findings``) and ``recipe.toml``; the suffix ``-conv`` adds that recipe's ``[conv]`` table (the grouped
convolution in the backbone). Not here: what all arms share in training (`contract`).
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from drafters.model.losses import LossFunction
from sglang_specbench.checkpoint_kind import block_drafters
from sglang_specbench.config import from_dict, load_toml, near_name
from sglang_specbench.errors import UserError

DRAFTERS = block_drafters()
_CONV = "-conv"


@dataclass(frozen=True)
class Recipe:
    """An arm's own settings: ``model`` goes to `DrafterConfig.from_target`, ``loss`` is ready to be called."""

    arm: str
    model: Mapping[str, Any]
    loss: LossFunction


def package(arm: str) -> ModuleType:
    """The package of ``arm``'s drafter; `UserError` with the nearest name when there is none."""
    if arm not in DRAFTERS:
        raise UserError(f"unknown drafter {arm!r}", near_name(arm, DRAFTERS))
    return importlib.import_module(f"drafters.{arm.removesuffix(_CONV)}")


def submodule(arm: str, name: str) -> ModuleType:
    """A file of ``arm``'s folder that its ``__init__`` does not pass on: ``tensors``, ``config_checks``."""
    return importlib.import_module(f"{package(arm).__name__}.{name}")


def load_recipe(arm: str, path: Path | None = None) -> Recipe:
    """The recipe of ``arm`` at ``path`` (default: its folder's, the paper's scale); `UserError` on an unknown key."""
    module = package(arm)
    path = path or Path(str(module.__file__)).with_name("recipe.toml")
    tables = load_toml(path)
    for name in tables:
        if name not in ("model", "loss", "conv"):
            raise UserError(f"{path}: unknown table [{name}]", near_name(name, ("model", "loss", "conv")))
    weights = from_dict(module.Weights, tables.get("loss", {}), f"{path}: [loss]")
    conv = tables.get("conv", {}) if arm.endswith(_CONV) else {}
    return Recipe(arm, {**tables.get("model", {}), **conv}, partial(module.loss, weights=weights))

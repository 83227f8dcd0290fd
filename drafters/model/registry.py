"""Which folder holds an arm's drafter, and the settings it is trained with.

Knows names: an arm is a row of ``ARMS`` with a head, and a folder of this package with ``head.py`` (``Head``,
``Settings``), ``loss.py`` (``loss``, ``Weights``), ``tensors.py`` (``head_tensors``), ``config_checks.py``
(``head_findings``) and ``recipe.toml``; the suffix ``-conv`` adds that recipe's ``[conv]`` table (the grouped
convolution in the backbone), ``-noconv`` leaves the recipe's convolution out. Not here: what all arms share in
training (`contract`).
"""

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from drafters.model.losses import LossFunction
from sglang_specbench.checkpoint_kind import block_drafters
from sglang_specbench.config import from_dict, load_toml, near_name
from sglang_specbench.errors import UserError

DRAFTERS = block_drafters()
_CONV, _NO_CONV = "-conv", "-noconv"


@dataclass(frozen=True)
class Recipe:
    """An arm's own settings: ``model`` goes to `DrafterConfig.from_target`, ``loss`` is ready to be called.

    ``weights`` are the numbers of that loss.
    """

    arm: str
    model: Mapping[str, Any]
    loss: LossFunction
    weights: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """What the arm was trained with, as tables of a recipe."""
        return {"model": dict(self.model), "loss": dict(self.weights)}


def package(arm: str) -> ModuleType:
    """The package of ``arm``'s drafter; `UserError` with the nearest name when there is none."""
    if arm not in DRAFTERS:
        raise UserError(f"unknown drafter {arm!r}", near_name(arm, DRAFTERS))
    return importlib.import_module(f"drafters.{arm.removesuffix(_CONV).removesuffix(_NO_CONV)}")


def submodule(arm: str, name: str) -> ModuleType:
    """A file of ``arm``'s folder that its ``__init__`` does not pass on: ``tensors``, ``config_checks``."""
    return importlib.import_module(f"{package(arm).__name__}.{name}")


def load_recipe(arm: str, path: Path | None = None) -> Recipe:
    """The recipe of ``arm`` at ``path`` (default: its folder's, the paper's scale); `UserError` on an unknown key."""
    module = package(arm)
    path = path or Path(str(module.__file__)).with_name("recipe.toml")
    tables = load_toml(path)
    for name, table in tables.items():
        if name not in ("model", "loss", "conv"):
            raise UserError(f"{path}: unknown table [{name}]", near_name(name, ("model", "loss", "conv")))
        if not isinstance(table, Mapping):
            raise UserError(f"{path}: {name}: expected a table, got {str(table)[:80]}", f"write [{name}]")
    weights = from_dict(module.Weights, tables.get("loss", {}), f"{path}: [loss]")
    conv = tables.get("conv", {}) if arm.endswith(_CONV) else {}
    if arm.endswith(_NO_CONV):
        conv = {"conv_kernel_size": 0, "conv_group_size": 0}
    model = {**tables.get("model", {}), **conv}
    return Recipe(arm, model, partial(module.loss, weights=weights), asdict(weights))

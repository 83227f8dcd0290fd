"""Recipes for a target that is not of the paper's size: what of a recipe is too large for it, and one that is not.

The recipes' widths belong to a target of 4,096 (Qwen3-8B). Scaled, a width keeps its share of the target's, rounded to
a power of two, and a drafter has at most a third of the target's layers. Which settings of a head are widths, its
`Settings` say.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from drafters.model.config import DrafterConfig, default_layer_ids
from drafters.model.finding import is_count
from drafters.model.registry import Recipe, load_recipe, package
from sglang_specbench.atomic_file import write_text
from sglang_specbench.checkpoint import read_config
from sglang_specbench.errors import UserError

PAPER_WIDTH = 4096  # hidden size of Qwen3-8B
LEAST_WIDTH = 16  # a head's attention still divides it
SHARE = 3  # target layers for each of the drafter's
DEFAULT_LAYERS = 5


def oversized(recipe: Recipe, target: Path) -> Iterator[str]:
    """What of ``recipe`` is larger than in any drafter of the paper: wider than the target, or half as deep."""
    target_width, depth = _sizes(target)
    for name in package(recipe.arm).Settings.widths:
        if (width := _count(recipe, name, 0)) > target_width:
            yield f"the recipe's {name} {width} is wider than the target ({target_width})"
    layers = _count(recipe, "num_hidden_layers", DEFAULT_LAYERS)
    if 2 * layers > depth:
        yield f"the recipe's {layers} layers are more than half of the target's {depth}"


def write_scaled(
    arms: Sequence[str], recipes: Path | None, target: Path, folder: Path, backbone: Path | None = None
) -> Path:
    """``folder``, with an ``ARM.toml`` for each arm: its recipe in ``recipes`` (None: the paper's), scaled.

    A ``backbone`` (a checkpoint's folder) that the arms start from decides what its tensors' shapes decide.
    """
    given = _shape(backbone) if backbone else {}
    target_width, depth = _sizes(target)
    folder.mkdir(parents=True, exist_ok=True)
    for arm in arms:
        recipe = load_recipe(arm, recipes / f"{arm}.toml" if recipes else None)
        text = f"# scaled to a target of width {target_width} and {depth} layers\n"
        tables = {"model": _scaled(recipe, target_width, depth) | given, "loss": dict(recipe.weights)}
        write_text(folder / f"{arm}.toml", text + "".join(map(_toml, tables, tables.values())))  # by every rank
    return folder


def _shape(backbone: Path) -> dict[str, Any]:
    own = DrafterConfig.from_json(read_config(backbone / "config.json"))
    names = ("num_hidden_layers", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim")
    return {**{name: getattr(own, name) for name in names}, "target_layer_ids": list(own.target_layer_ids)}


def _sizes(target: Path) -> tuple[int, int]:
    """Width and layers of ``target``; `UserError` where its config does not say them."""
    path = target / "config.json"
    config = read_config(path)
    for name in ("hidden_size", "num_hidden_layers"):
        if not is_count(config.get(name)):
            raise UserError(f"{path}: {name}: missing or not a positive integer", "is it a language model's config?")
    return config["hidden_size"], config["num_hidden_layers"]


def _count(recipe: Recipe, name: str, default: int) -> int:
    """A size of ``recipe``; the default for what is none, which is refused where a drafter is built of it."""
    value = recipe.model.get(name)
    return value if isinstance(value, int) and is_count(value) else default


def _scaled(recipe: Recipe, target_width: int, depth: int) -> dict[str, Any]:
    share = target_width / PAPER_WIDTH
    model = dict(recipe.model)
    for name in package(recipe.arm).Settings.widths:
        if width := _count(recipe, name, 0):
            model[name] = min(width, max(LEAST_WIDTH, 1 << max(0, round(math.log2(width * share)))))
    layers = max(1, min(_count(recipe, "num_hidden_layers", DEFAULT_LAYERS), depth // SHARE))
    return {**model, "num_hidden_layers": layers, "target_layer_ids": list(default_layer_ids(layers, depth))}


def _toml(name: str, table: Mapping[str, Any]) -> str:
    """JSON scalars and lists of them are TOML."""
    return f"\n[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())

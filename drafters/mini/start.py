"""Where every mini drafter's backbone starts: the target's own last layers.

At this scale a drafter sees a thousandth of the tokens that a paper-scale one does, so its two layers are copied from
the target's last two (same geometry), its context from the deepest captured layer, normalised as the last layer
expects it. All arms start from the same backbone; heads start as their ``head.py`` says. The paper's recipe does not
do this.
"""

from pathlib import Path

import torch

from drafters.checkpoints.export import save
from drafters.mini.tokenizer import MASK_ID
from drafters.model.config import DrafterConfig
from drafters.model.drafter import build
from drafters.model.registry import load_recipe
from drafters.reference.target import Target

SEED = 42
RECIPES = Path(__file__).with_name("recipes")


def write_start(target_folder: Path, folder: Path) -> None:
    """Write a DFlash checkpoint with that backbone to ``folder``."""
    target = Target.load(target_folder)
    recipe = load_recipe("dflash", RECIPES / "dflash.toml")
    config = DrafterConfig.from_target(target.config, "dflash", mask_token_id=MASK_ID, **recipe.model)
    torch.manual_seed(SEED)
    tensors = build(config).state_dict()
    source = target.model.base_model.state_dict()
    first = config.num_target_layers - config.num_hidden_layers
    for name in tensors:
        if name.startswith("layers."):
            _, index, rest = name.split(".", 2)
            tensors[name] = source[f"layers.{first + int(index)}.{rest}"]
    width = config.hidden_size
    tensors["fc.weight"][:, -width:] = torch.eye(width)  # the other captured layers enter at random, small
    tensors["hidden_norm.weight"] = source[f"layers.{config.num_target_layers - 1}.input_layernorm.weight"]
    tensors["norm.weight"] = source["norm.weight"]
    save(folder, config.to_json(), tensors)

"""Where an arm starts: weights drawn from the seed, and perhaps another checkpoint's backbone in their place."""

from pathlib import Path

import torch
from safetensors.torch import load_file

from drafters.model.config import DrafterConfig
from drafters.model.drafter import Drafter, build
from sglang_specbench.checkpoint import TENSORS_BYTES
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import open_file, reading


def start(config: DrafterConfig, seed: int, backbone: Path | None) -> Drafter:
    """A drafter whose initial weights depend on the seed (and ``backbone``) alone, not on the arms beside it.

    `UserError` when the checkpoint folder ``backbone`` lacks a tensor of the backbone or has one of another shape; a
    convolution, which not every arm has, may be absent.
    """
    torch.manual_seed(seed)
    drafter = build(config)
    if backbone:
        _take_over(drafter, backbone)
    return drafter


def _take_over(drafter: Drafter, backbone: Path) -> None:
    path, own = backbone / "model.safetensors", drafter.state_dict()
    if not path.is_file():
        raise UserError(f"--backbone {backbone}: no model.safetensors there", "name a checkpoint folder")
    with reading(path, "name another checkpoint folder", "not a safetensors file"):
        open_file(path, TENSORS_BYTES).close()
        given = load_file(path)
    wanted = list(drafter.backbone.state_dict())
    for name in wanted:
        if name not in given and "_conv." not in name:
            raise UserError(
                f"--backbone {backbone}: no tensor {name!r} (it has {min(given, default='none')!r})",
                "bring the checkpoint into SGLang's names first: specbench export SOURCE FOLDER",
            )
        if name in given and given[name].shape != own[name].shape:
            raise UserError(
                f"--backbone {backbone}: {name} is {list(given[name].shape)}, the recipe's {list(own[name].shape)}",
                "give a backbone of the recipe's sizes",
            )
    drafter.load_state_dict({**own, **{name: given[name] for name in wanted if name in given}})

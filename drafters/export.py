"""Write a drafter as the checkpoint that SGLang 0.5.23 loads: config.json and bf16 tensors under its names, checked.

``save`` writes one; ``export_run`` takes it from an arm of a training run, `importing` from a public checkpoint in
another trainer's form.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from drafters.check import check
from drafters.training_state import latest, load_arm
from sglang_specbench.errors import UserError


def save(folder: Path, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write ``config`` and ``tensors`` (rounded to bf16) to ``folder``.

    Raises `UserError` with the first finding when `check` finds anything wrong with what was written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**config, "dtype": "bfloat16"}, indent=2)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")
    rounded = {name: value.detach().to(torch.bfloat16).contiguous().cpu() for name, value in tensors.items()}
    save_file(rounded, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors writes for its owner alone
    if found := check(folder):
        raise UserError(f"{folder}: {found[0].where}: {found[0].problem}", found[0].remedy)


def export_run(run: Path, arm: str, folder: Path) -> None:
    """The last checkpoint of ``arm`` in the training run ``run``; `UserError` when there is none."""
    state = load_arm(latest(run), arm)
    save(folder, state["config"], state["drafter"])

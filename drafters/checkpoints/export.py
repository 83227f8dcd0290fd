"""Write a drafter as the checkpoint that SGLang 0.5.23 loads: config.json and bf16 tensors under its names, checked.

``save`` writes one; ``export_run`` takes it from an arm of a training run, `importing` from a public checkpoint in
another trainer's form.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from drafters.checkpoints.check import check
from drafters.training.checkpoint import latest, load_arm
from sglang_specbench.errors import UserError


def save(folder: Path, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write ``config`` and ``tensors`` (rounded to bf16) to ``folder``.

    Raises `UserError` with the first finding when `check` finds anything wrong with what was written.
    """
    rounded = {name: value.detach().to(torch.bfloat16).contiguous().cpu() for name, value in tensors.items()}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".export-", dir=folder.parent) as scratch:  # nothing wrong reaches ``folder``
        written = Path(scratch)
        text = json.dumps({**config, "dtype": "bfloat16"}, indent=2)
        (written / "config.json").write_text(text + "\n", encoding="utf-8")
        save_file(rounded, written / "model.safetensors", metadata={"format": "pt"})
        (written / "model.safetensors").chmod(0o644)  # safetensors writes for its owner alone
        if found := check(written):
            raise UserError(f"{folder}: not written: {found[0].where}: {found[0].problem}", found[0].remedy)
        folder.mkdir(exist_ok=True)
        for name in ("model.safetensors", "config.json"):
            (written / name).replace(folder / name)


def export_run(run: Path, arm: str, folder: Path) -> None:
    """The last checkpoint of ``arm`` in the training run ``run``; `UserError` when there is none."""
    state = load_arm(latest(run), arm)
    save(folder, state["config"], state["drafter"])

"""Write a drafter as the checkpoint that SGLang 0.5.23 loads: config.json and bf16 tensors under its names, checked.

``save`` writes one; ``export_run`` takes it from an arm of a training run, `importing` from a public checkpoint in
another trainer's form.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from drafters.checkpoints.check import check
from drafters.lilicorr.head import served
from drafters.training import provenance
from drafters.training.checkpoint import REMEDY, latest, load_arm, said_of
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import reading


def save(
    folder: Path, config: dict[str, Any], tensors: dict[str, Tensor], known: Mapping[str, Any] | None = None
) -> None:
    """Write ``config``, ``tensors`` (rounded to bf16) and what is ``known`` of their provenance to ``folder``.

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
        provenance.write(written, config, known or {})
        folder.mkdir(exist_ok=True)
        for name in ("model.safetensors", "config.json", provenance.FILE):
            (written / name).replace(folder / name)


def export_run(run: Path, arm: str, folder: Path, *, best: bool = False) -> None:
    """``arm`` of the training run ``run`` as it was last, or where it decoded best; `UserError` when there is none.

    Arms that were trained one after another have a run folder each inside ``run``.
    """
    run = run / arm if (run / arm).is_dir() else run
    state_folder = run / "best" if best else latest(run)
    state, path = load_arm(state_folder, arm, *(["state"] if best else [])), state_folder / f"{arm}.pt"
    said = state["state"] if best else said_of(state_folder)
    with reading(path, REMEDY, "does not fit this arm"):
        served_as, known = _served(state), _known(arm, said)
    save(folder, *served_as, known)


def _served(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if "LiLiCorrDraftModel" in state["config"]["architectures"]:
        return served(state["config"], state["drafter"])
    return state["config"], state["drafter"]


def _known(arm: str, said: Mapping[str, Any]) -> dict[str, Any]:
    trained = said.get("provenance", {})
    return {
        "arm": arm,
        "contract": trained.get("terms"),
        "recipe": trained.get("recipes", {}).get(arm),
        "steps": said["step"],
        "seed": trained.get("terms", {}).get("seed"),
        "corpus_digest": said.get("corpus"),
        "commit": trained.get("commit"),
        "target_digest": said.get("target"),
    }

"""What a killed training run continues from: ``RUN/step-N``, complete or not there at all.

A state folder holds one file for each arm (config, drafter, optimiser) and ``state.json`` (step, contract, corpus). It
is written under another name and renamed, and only then are older ones deleted. Data order, anchors and the random
generator need no record: they are functions of the seed and the step.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from sglang_specbench.errors import UserError

_NAME = "step-{:07d}"


def save(run: Path, step: int, arms: dict[str, dict[str, Any]], identity: dict[str, str]) -> None:
    """Write the state after ``step`` steps: ``arms`` maps an arm's name to its config, drafter and optimiser state."""
    part = run / "state.part"
    shutil.rmtree(part, ignore_errors=True)  # of a run killed while it wrote
    part.mkdir(parents=True)
    for name, state in arms.items():
        torch.save(state, part / f"{name}.pt")
    (part / "state.json").write_text(json.dumps({"step": step, **identity}, indent=2))
    older = states(run)
    part.rename(run / _NAME.format(step))
    for folder in older:
        shutil.rmtree(folder)


def states(run: Path) -> list[Path]:
    """Complete states of ``run``, oldest first."""
    return sorted(run.glob("step-*"))


def latest(run: Path) -> Path:
    """The newest state of ``run``; `UserError` if there is none."""
    found = states(run)
    if not found:
        raise UserError(f"{run}: no training state (step-*)", "train first, or wait for the first checkpoint")
    return found[-1]


def load_arm(state: Path, arm: str) -> dict[str, Any]:
    """Config, drafter and optimiser of ``arm``, on the CPU; `UserError` naming the arms there are if it is not one."""
    path = state / f"{arm}.pt"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in state.glob("*.pt")))
        raise UserError(f"{state}: no arm {arm!r}", f"it holds {known}")
    return torch.load(path, map_location="cpu", weights_only=True)


def resume_step(state: Path, identity: dict[str, str]) -> int:
    """The step to continue with; `UserError` when the state was trained under another contract or corpus."""
    said = json.loads((state / "state.json").read_text())
    for name, value in identity.items():
        if said[name] != value:
            raise UserError(
                f"{state}: trained with another {name} ({said[name]}, now {value})",
                "continue with the old one, or train into a new folder",
            )
    return int(said["step"])

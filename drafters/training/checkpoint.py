"""What a killed training run continues from: ``RUN/step-N``, complete or not there at all.

A state folder holds one file for each arm (config, drafter, optimiser) and ``state.json`` (step, contract, corpus). It
is written under another name and renamed, and only then are older ones deleted. Data order, anchors and the random
generator need no record: they are functions of the seed and the step.
"""

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sglang_specbench.errors import UserError

_NAME = "step-{:07d}"


@dataclass(frozen=True)
class Best:
    """Where an arm decoded best: ``tau`` 0 when nothing was decoded yet."""

    step: int = 0
    tau: float = 0.0


def save(
    run: Path,
    step: int,
    arms: Iterable[tuple[str, dict[str, Any]]],
    identity: dict[str, str],
    provenance: dict[str, Any],
) -> None:
    """Write the state after ``step`` steps; ``arms`` gives each arm's name and state, one at a time."""
    part = run / "state.part"
    shutil.rmtree(part, ignore_errors=True)  # of a run killed while it wrote
    part.mkdir(parents=True)
    for name, state in arms:
        torch.save(state, part / f"{name}.pt")
    _write_json(part / "state.json", {"step": step, **identity, "provenance": provenance})
    older = states(run)
    part.rename(run / _NAME.format(step))
    for folder in older:
        shutil.rmtree(folder)


def save_best(
    run: Path, arm: str, best: Best, drafter: Any, identity: dict[str, str], provenance: dict[str, Any]
) -> None:
    """Keep the weights of ``arm`` that decode best so far in ``run``/best: written whole, then renamed."""
    folder = run / "best"
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{arm}.part"
    said = {"step": best.step, "decoded_tau": best.tau, **identity, "provenance": provenance}
    torch.save({"config": drafter.config.to_json(), "drafter": drafter.state_dict(), "state": said}, part)
    part.replace(folder / f"{arm}.pt")


def load_best(run: Path, arm: str) -> Best:
    """Step and tau of the best weights kept so far."""
    if not (run / "best" / f"{arm}.pt").is_file():
        return Best()
    said = load_arm(run / "best", arm)["state"]
    return Best(said["step"], said["decoded_tau"])


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def said_of(state: Path) -> dict[str, Any]:
    """Step, identity and provenance of a state."""
    said: dict[str, Any] = json.loads((state / "state.json").read_text(encoding="utf-8"))
    return said


def states(run: Path) -> list[Path]:
    """Complete states of ``run``, oldest first."""
    return sorted(run.glob("step-*"))


def arms_of(run: Path) -> list[str]:
    """Arms that the newest state of ``run`` holds, or, trained one by one, the run folders in it; [] for no run."""
    if found := states(run):
        return sorted(path.stem for path in found[-1].glob("*.pt"))
    return sorted(path.name for path in run.iterdir() if states(path)) if run.is_dir() else []


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
    """The step to continue with; `UserError` when the state has another contract, corpus or target."""
    said = said_of(state)
    for name, value in identity.items():
        if said.get(name) != value:
            raise UserError(
                f"{state}: trained with another {name} ({said.get(name, 'not recorded')}, now {value})",
                "continue with the old one, or train into a new folder",
            )
    return int(said["step"])

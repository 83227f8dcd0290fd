"""What a killed training run continues from: ``RUN/step-N``, complete or not there at all.

A state folder holds one file for each arm (config, drafter, optimiser) and ``state.json`` (step, contract, corpus). It
is written under another name and renamed, and only then are older ones deleted. Data order, anchors and the random
generator need no record: they are functions of the seed and the step.
"""

import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sglang_specbench.atomic_file import whole
from sglang_specbench.config import from_dict
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import json_value, open_file, read_object, reading

_NAME, _STATE = "step-{:07d}", re.compile(r"step-\d{7,12}")
STATE_BYTES = 1 << 40  # of one arm
REMEDY = "delete this state: the one before it is used, or training starts anew"
KINDS = {"config": dict, "drafter": dict, "optimiser": dict, "state": dict}  # of what an arm's file may hold


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
    """Keep the weights of ``arm`` that decode best so far in ``run``/best."""
    folder = run / "best"
    folder.mkdir(parents=True, exist_ok=True)
    said = {"step": best.step, "decoded_tau": best.tau, **identity, "provenance": provenance}
    with whole(folder / f"{arm}.pt") as part:
        torch.save({"config": drafter.config.to_json(), "drafter": drafter.state_dict(), "state": said}, part)


def load_best(run: Path, arm: str) -> Best:
    """Step and tau of the best weights kept so far."""
    if not (run / "best" / f"{arm}.pt").is_file():
        return Best()
    return best_of(load_arm(run / "best", arm, "state")["state"], run / "best" / f"{arm}.pt")


def best_of(said: dict[str, Any], where: Path) -> Best:
    """Step and tau that the file ``where`` says of itself."""
    return from_dict(Best, {"step": said.get("step"), "tau": said.get("decoded_tau")}, str(where))


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def said_of(state: Path) -> dict[str, Any]:
    """Step, identity and provenance of a state."""
    path = state / "state.json"
    said = read_object(path, REMEDY)
    step, provenance = said.get("step"), said.get("provenance", {})
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        raise UserError(f"{path}: step: expected a whole number, got {step!r:.80}", REMEDY)
    if not isinstance(provenance, dict):
        raise UserError(f"{path}: provenance: expected an object", REMEDY)
    return said


def states(run: Path) -> list[Path]:
    """Complete states of ``run``, oldest first."""
    return sorted(path for path in run.glob("step-*") if _STATE.fullmatch(path.name))


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


def load_arm(state: Path, arm: str, *needed: str) -> dict[str, Any]:
    """Config, drafter and ``needed`` (optimiser or state) of ``arm``, on the CPU.

    `UserError` naming the arms there are if it is not one, or what of its file cannot be used.
    """
    path = state / f"{arm}.pt"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in state.glob("*.pt")))
        raise UserError(f"{state}: no arm {arm!r}", f"it holds {known}")
    with open_file(path, STATE_BYTES, REMEDY) as handle, reading(path, REMEDY, "not a training state"):
        found = torch.load(handle, map_location="cpu", weights_only=True)
    for key in ("config", "drafter", *needed):
        if not isinstance(found, dict) or not isinstance(found.get(key), KINDS[key]):
            raise UserError(f"{path}: {key} is missing or of another type", REMEDY)
    for key in {"config", "state"} & found.keys():
        with reading(path, REMEDY, f"{key} holds more than JSON"):
            found[key] = json_value(json.dumps(found[key]), str(path), REMEDY)
    if not all(isinstance(k, str) and isinstance(v, torch.Tensor) for k, v in found["drafter"].items()):
        raise UserError(f"{path}: drafter holds something that is no tensor", REMEDY)
    return found


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

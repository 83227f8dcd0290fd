"""Training curves: the acceptance length that each arm really decodes at, the teacher-forced one, and the loss.

Knows a training folder: ``metrics.jsonl`` of `drafters.training.progress`, in the folder itself or, of arms trained one
by one, in a folder each. All three numbers are of held-out text.
"""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from plots import style
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import json_lines

METRICS = "metrics.jsonl"
REMEDY = "name the folder of specbench train"
CURVES = {
    "decoded_tau": "tau, decoded greedily",
    "tau": "tau, with the true tokens before each slot",
    "loss": "loss (each arm's own: not comparable)",
}


def is_training(folder: Path) -> bool:
    """Whether ``folder`` was written by `specbench train`."""
    return bool(_files(folder))


def curves(folder: Path) -> pd.DataFrame:
    """One line per evaluation and arm: step, arm, `CURVES` (NaN where not measured), decoded_blocks.

    `UserError` naming the line that is not a record, or when nothing was evaluated yet.
    """
    lines = [
        _line(where, row) for path in _files(folder) for where, row in json_lines(path) if row.get("kind") == "held_out"
    ]
    if not lines:
        raise UserError(f"{folder}: no evaluation yet", "wait for evaluate_every steps, or train with held-out text")
    return pd.DataFrame(lines).sort_values(["arm", "step"], kind="stable").reset_index(drop=True)


def save(folder: Path, out: Path) -> list[Path]:
    """Draw the curves of ``folder`` into ``out``; the files. Raises as `curves`."""
    found = curves(folder)
    with style.look():
        figure = draw(found)
        style.footnotes(figure, notes(found))
        return style.save(figure, out, "training")


def draw(found: pd.DataFrame) -> Figure:
    """One axis a curve; the legend gives each arm's best decoded tau and its step."""
    figure: Figure
    figure, axes = plt.subplots(1, len(CURVES), figsize=(style.WIDTH, 2.4))
    for axis, (name, label) in zip(axes, CURVES.items(), strict=True):
        for arm, own in found.groupby("arm", sort=False):
            axis.plot(own.step, own[name], **{**style.line(str(arm)), "markersize": 2, "label": _label(str(arm), own)})
        axis.set_xlabel("step")
        axis.set_title(label)
    figure.tight_layout()
    style.legend(figure, axes)
    return figure


def notes(found: pd.DataFrame) -> list[str]:
    """How sure the decoded points are."""
    blocks = found.decoded_blocks.dropna()
    if blocks.empty:
        return ["Nothing was decoded: decode_prompts is 0 in the contract."]
    return [
        f"Decoded tau is over {int(blocks.min())} to {int(blocks.max())} verify blocks a point, without an interval."
    ]


def _files(folder: Path) -> list[Path]:
    own = folder / METRICS
    return [own] if own.is_file() else sorted(folder.glob(f"*/{METRICS}"))


def _line(where: str, row: dict[str, object]) -> dict[str, object]:
    step, arm = row.get("step"), row.get("arm")
    if not isinstance(step, int) or not isinstance(arm, str):
        raise UserError(f"{where}: step and arm are not a number and a name", REMEDY)
    found = {name: row.get(name) for name in (*CURVES, "decoded_blocks")}
    numbers = {name: math.nan if value is None else value for name, value in found.items()}
    if odd := [name for name, value in numbers.items() if not isinstance(value, int | float) or value is True]:
        raise UserError(f"{where}: {odd[0]} is no number", REMEDY)
    return {"step": step, "arm": arm, **numbers}


def _label(arm: str, own: pd.DataFrame) -> str:
    decoded = own.dropna(subset="decoded_tau")
    if decoded.empty:
        return style.title(arm)
    best = decoded.loc[decoded.decoded_tau.idxmax()]
    return f"{style.title(arm)}: {best.decoded_tau:.2f} at {int(best.step)}"

"""The drafters' stage of the mini build: start, joint training of all arms, export to the folders that ship.

The arms are trained in two processes of one thread (half of them each; an arm trains the same whichever stand beside
it), which keeps two cores busier than two threads would. A finished or killed stage continues where it was.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from drafters.checkpoints.export import export_run
from drafters.mini.start import RECIPES, write_start
from drafters.mini.tokenizer import MASK_ID
from drafters.training.progress import METRICS

CONTRACT = Path(__file__).with_name("contract.toml")
HALVES = (("dflash", "dflash2", "lilicorr"), ("domino", "dspark", "lilicorr-conv"))
LOGGED = ("step", "kind", "loss", "tau", "top1_prefix", "selected_prefix", "oracle_prefix", "grad_norm", "tokens_per_s")


def train_drafters(out: Path, work: Path) -> None:
    """Train every arm on ``work``'s completions and write it to ``out``/ARM, its log to ``out``/logs/ARM.jsonl."""
    if not (work / "start/model.safetensors").exists():
        write_start(out / "target", work / "start")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    processes = [subprocess.Popen(_command(out, work, half), env=environment) for half in range(len(HALVES))]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit("training failed; run the build again to resume it")
    export_all(out, work)


def export_all(out: Path, work: Path) -> None:
    """Write the last state of every arm, whether training is over or not."""
    (out / "logs").mkdir(exist_ok=True)
    for half, arms in enumerate(HALVES):
        for arm in arms:
            export_run(_run(work, half), arm, out / arm)
            lines = (_run(work, half) / METRICS).read_text().splitlines()
            rows = [row for row in map(json.loads, lines) if row["arm"] == arm]
            (out / "logs" / f"{arm}.jsonl").write_text("".join(json.dumps(_short(row)) + "\n" for row in rows))


def _run(work: Path, half: int) -> Path:
    return work / f"drafters-{half}"


def _command(out: Path, work: Path, half: int) -> list[str]:
    specbench = shutil.which("specbench", path=str(Path(sys.executable).parent)) or "specbench"
    options: dict[str, Any] = {
        "target": out / "target",
        "corpus": work / "completions.jsonl",
        "held-out": work / "held_out.jsonl",
        "contract": CONTRACT,
        "recipes": RECIPES,
        "backbone": work / "start",
        "mask-token-id": MASK_ID,
    }
    named = [f"--{name}={value}" for name, value in options.items()]
    return [specbench, "train", str(_run(work, half)), *named, *(f"--arm={arm}" for arm in HALVES[half])]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    return {key: round(row[key], 4) if isinstance(row[key], float) else row[key] for key in LOGGED if key in row}

"""``specbench train``: every arm of a contract, side by side; alone, or on every GPU under ``torchrun``."""

import dataclasses
import os
from pathlib import Path
from typing import Annotated

import typer

from sglang_specbench.errors import UserError


def train(
    folder: Annotated[Path, typer.Argument(help="Run folder: states, metrics.jsonl. A second call resumes.")],
    target: Annotated[Path, typer.Option(help="The target's folder.")],
    corpus: Annotated[Path, typer.Option(help="JSONL written by `specbench generate`.")],
    mask_token_id: Annotated[int, typer.Option(help="Token id that stands for a drafted slot; never in text.")],
    held_out: Annotated[Path | None, typer.Option(help="JSONL of conversations to evaluate on.")] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Only these arms of the contract (repeat the option).")] = None,
    contract: Annotated[Path | None, typer.Option(help="Training contract; default: the paper's.")] = None,
    recipes: Annotated[Path | None, typer.Option(help="Folder of ARM.toml; default: the paper's scale.")] = None,
    backbone: Annotated[Path | None, typer.Option(help="Checkpoint whose backbone every arm starts from.")] = None,
) -> None:
    """Train drafters jointly under one contract."""
    if not (target / "config.json").is_file():
        raise UserError(f"train: --target {target}: no config.json there", "name the target's folder")
    import torch
    import torch.distributed as dist
    from transformers import AutoTokenizer

    from drafters.contract import PAPER, Contract
    from drafters.data import read_samples
    from drafters.target import Target
    from drafters.train import Run, Training

    terms = Contract.load(contract or PAPER)
    terms = dataclasses.replace(terms, arms=tuple(arm) if arm else terms.arms)
    device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu"
    if "WORLD_SIZE" in os.environ:  # torchrun's
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    dtype = torch.bfloat16 if terms.precision == "bf16" else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(target)
    run = Run(
        folder=folder,
        contract=terms,
        target=Target.load(target, dtype, device),
        samples=read_samples(corpus, tokenizer, terms.length),
        held_out=read_samples(held_out, tokenizer, terms.length) if held_out else [],
        mask_token_id=mask_token_id,
        recipes=recipes,
        backbone=backbone,
    )
    Training(run).run()

"""``specbench train``: every arm of a contract, side by side; alone, or on every GPU under ``torchrun``."""

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sglang_specbench.checkpoint_kind import block_drafters
from sglang_specbench.config import near_name
from sglang_specbench.digest import weights_digest
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import reading
from sglang_specbench.models import folder_of

if TYPE_CHECKING:
    from drafters.corpus.samples import Corpus
    from drafters.training.contract import Contract


def train(
    folder: Annotated[Path, typer.Argument(help="Run folder: states, metrics.jsonl. A second call resumes.")],
    target: Annotated[str, typer.Option(help="Folder, mini:target, or a downloaded hub id (ORG/NAME[@REVISION]).")],
    corpus: Annotated[Path, typer.Option(help="JSONL written by `specbench generate`.")],
    mask_token_id: Annotated[int, typer.Option(help="Token id that stands for a drafted slot; never in text.")],
    held_out: Annotated[Path | None, typer.Option(help="JSONL of conversations to evaluate on.")] = None,
    arm: Annotated[
        list[str] | None, typer.Option(help="These arms, and not the contract's (repeat the option).")
    ] = None,
    contract: Annotated[
        str, typer.Option(help="Training contract: a TOML file, or one that ships (paper, mini).")
    ] = "paper",
    recipes: Annotated[Path | None, typer.Option(help="Folder of ARM.toml; default: the paper's scale.")] = None,
    scaled: Annotated[
        bool,
        typer.Option(
            "--scaled", help="The recipes, scaled to the target (and to --backbone); written to FOLDER/recipes."
        ),
    ] = False,
    backbone: Annotated[
        str | None, typer.Option(help="Checkpoint (folder, mini:NAME, ...) whose backbone every arm starts from.")
    ] = None,
    one_by_one: Annotated[bool, typer.Option("--one-by-one", help="Arm after arm: the memory of one.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say memory, disk, steps, hours; stop.")] = False,
) -> None:
    """Train drafters jointly under one contract."""
    terms = _terms(contract, arm)
    model = folder_of(target, "train: --target")
    _require_files(model, corpus, held_out)
    terms.require_even(int(os.environ.get("WORLD_SIZE", 1)))  # torchrun's: before any rank waits for another
    import torch
    from transformers import AutoTokenizer

    from drafters.corpus.samples import read_corpus
    from drafters.model.registry import load_recipe
    from drafters.reference.target import Target
    from drafters.training.forecast import forecast
    from drafters.training.loop import Run, Training, in_sequence
    from drafters.training.scaled_recipes import oversized, write_scaled

    start = folder_of(backbone, "train: --backbone") if backbone else None
    first = os.environ.get("RANK", "0") == "0"
    if scaled:
        recipes = write_scaled(terms.arms, recipes, model, folder / "recipes", start)
    for name in terms.arms:
        recipe = load_recipe(name, recipes / f"{name}.toml" if recipes else None)
        for problem in oversized(recipe, model) if first else ():
            typer.echo(f"warning: {name}: {problem} (--scaled derives recipes of its size)", err=True)
    with reading(f"train: --target {target}", "bring its tokenizer files too", "no tokenizer there"):
        tokenizer = AutoTokenizer.from_pretrained(model)
    read = read_corpus(corpus, tokenizer, terms.length)
    evaluated = read_corpus(held_out, tokenizer, terms.length).samples if held_out else []
    terms.steps(len(read.samples))  # refuses a corpus smaller than a batch before the weights are loaded
    if first:
        typer.echo(_said(read), err=True)
    if dry_run:
        typer.echo(forecast(terms, model, read.samples, recipes, mask_token_id, one_by_one=one_by_one))
        return
    device = _device()
    dtype = torch.bfloat16 if terms.precision == "bf16" else torch.float32
    with reading(f"train: --target {target}", "is it a whole causal language model?", "cannot be loaded"):
        loaded = Target.load(model, dtype, device)
    run = Run(
        folder=folder,
        contract=terms,
        target=loaded,
        target_digest=weights_digest(model),
        samples=read.samples,
        held_out=evaluated,
        mask_token_id=mask_token_id,
        recipes=recipes,
        backbone=start,
    )
    if one_by_one:
        in_sequence(run)
    else:
        Training(run).run()


def _device() -> str:
    """Device of this rank, after joining the other ranks of ``torchrun``."""
    import torch
    import torch.distributed as dist

    device = "cpu"
    if torch.cuda.is_available():
        device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.cuda.set_device(device)  # else every rank opens a context on the first GPU, too
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return device


def _said(read: "Corpus") -> str:
    counts = "".join(f"; {count} {reason}" for reason, count in sorted(read.counts.items()))
    return f"corpus: {len(read.samples)} samples{counts}"


def _terms(source: str, arms: list[str] | None) -> "Contract":
    """The contract, with ``arms`` in place of its own, if there are any."""
    from drafters.training.contract import Contract, locate

    terms = Contract.load(locate(source))
    for name in arms or ():
        if name not in block_drafters():
            raise UserError(f"train: --arm: unknown drafter {name!r}", near_name(name, block_drafters()))
    return dataclasses.replace(terms, arms=tuple(dict.fromkeys(arms or terms.arms)))


def _require_files(target: Path, corpus: Path, held_out: Path | None) -> None:
    if not any((target / name).is_file() for name in ("tokenizer.json", "vocab.json")):  # else an empty one is made up
        raise UserError(f"train: --target {target}: no tokenizer there", "bring its tokenizer files too")
    for option, path in (("--corpus", corpus), ("--held-out", held_out)):
        if path and not path.is_file():
            raise UserError(f"train: {option} {path}: no such file", "check the path; specbench generate writes one")

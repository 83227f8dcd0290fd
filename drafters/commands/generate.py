"""``specbench generate``: from prompts to the corpus that drafters are trained on."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from sglang_specbench.console import Console
from sglang_specbench.foreign_file import reading


def generate(
    output: Annotated[Path, typer.Argument(help="JSONL to write; a second call does what is missing in it.")],
    target: Annotated[str, typer.Option(help="Folder or hub name of the target, for its chat template.")],
    server: Annotated[str, typer.Option(help="URL of an SGLang server that serves the target.")],
    prompts: Annotated[
        Path | None, typer.Option(help="JSONL of conversations; default: the paper's corpus, streamed from the hub.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Conversations of each split of the paper's corpus.")] = None,
    concurrency: Annotated[int, typer.Option(help="Conversations in flight.")] = 64,
) -> None:
    """Regenerate the answers of a corpus with the target."""
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # it misses torch, which no tokenizer needs
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from transformers import PreTrainedTokenizerFast  # AutoTokenizer would import torch

    from drafters.corpus import nemotron
    from drafters.corpus.conversation import read_conversations
    from drafters.corpus.generate import regenerate

    conversations = read_conversations(prompts) if prompts else nemotron.stream(limit=limit)
    hint = "name the target's folder, or a hub id that this machine has or reaches"
    with reading(f"generate: --target {target}", hint, "no tokenizer there"):
        tokenizer = PreTrainedTokenizerFast.from_pretrained(target)
    said = "{task.fields[done]} answered ({task.fields[cut]} cut at the token limit), {task.fields[failed]} failed"
    columns = (SpinnerColumn(), TextColumn(said, markup=False))
    counts: dict[str, Any] = {"done": 0, "failed": 0, "cut": 0}
    with Progress(*columns, TimeElapsedColumn(), console=Console(goes_on=True)) as progress:
        task = progress.add_task("", total=None, done=0, failed=0, cut=0)

        def on_done(row: dict[str, Any]) -> None:
            counts["failed" if "error" in row else "done"] += 1
            counts["cut"] += bool(row.get("cut"))
            progress.update(task, done=counts["done"], failed=counts["failed"], cut=counts["cut"])

        regenerate(conversations, output, tokenizer, server=server, concurrency=concurrency, on_done=on_done)
    if counts["failed"]:
        raise typer.Exit(5)

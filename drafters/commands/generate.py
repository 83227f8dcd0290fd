"""``specbench generate``: from prompts to the corpus that drafters are trained on."""

import contextlib
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from sglang_specbench.atomic_file import make_folder
from sglang_specbench.console import Console
from sglang_specbench.device import detect_device
from sglang_specbench.foreign_file import reading
from sglang_specbench.models import folder_of

CONCURRENCY = {"cuda": 64, "cpu": 8}  # where no server is named, it is started for so many


def generate(
    output: Annotated[Path, typer.Argument(help="JSONL to write; a second call does what is missing in it.")],
    target: Annotated[str, typer.Option(help="Folder, mini:target, or a downloaded hub id (ORG/NAME[@REVISION]).")],
    server: Annotated[
        str, typer.Option(help="URL of a server that serves the target; without it `specbench serve` starts one.")
    ] = "",
    prompts: Annotated[
        str,
        typer.Option(help="JSONL of conversations, or `sample` (70 that ship); default: the paper's, from the hub."),
    ] = "",
    limit: Annotated[int | None, typer.Option(help="Conversations of each split of the paper's corpus.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Conversations in flight; default: 64, on a CPU 8.")] = None,
) -> None:
    """Regenerate the answers of a corpus with the target."""
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # it misses torch, which no tokenizer needs
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from transformers import PreTrainedTokenizerFast  # AutoTokenizer would import torch

    from drafters.corpus import nemotron
    from drafters.corpus.conversation import read_conversations
    from drafters.corpus.generate import regenerate
    from drafters.corpus.sample import SAMPLE
    from drafters.corpus.target_server import serving

    named = SAMPLE if prompts == "sample" else Path(prompts)
    conversations = read_conversations(named) if prompts else nemotron.stream(limit=limit)
    folder = folder_of(target, "generate: --target", weights=not server)
    with reading(f"generate: --target {target}", "bring its tokenizer files too", "no tokenizer there"):
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    make_folder(output.parent, "generate: OUTPUT")  # before a server is started for nothing
    flight = concurrency or (64 if server else CONCURRENCY[detect_device()])
    said = "{task.fields[done]} answered ({task.fields[cut]} cut at the token limit), {task.fields[failed]} failed"
    columns = (SpinnerColumn(), TextColumn(said, markup=False))
    counts: dict[str, Any] = {"done": 0, "failed": 0, "cut": 0}
    with (
        contextlib.nullcontext(server) if server else serving(target, flight) as url,
        Progress(*columns, TimeElapsedColumn(), console=Console(goes_on=True)) as progress,
    ):
        task = progress.add_task("", total=None, done=0, failed=0, cut=0)

        def on_done(row: dict[str, Any]) -> None:
            counts["failed" if "error" in row else "done"] += 1
            counts["cut"] += bool(row.get("cut"))
            progress.update(task, done=counts["done"], failed=counts["failed"], cut=counts["cut"])

        regenerate(conversations, output, tokenizer, server=url, concurrency=flight, on_done=on_done)
    if counts["failed"]:
        raise typer.Exit(5)

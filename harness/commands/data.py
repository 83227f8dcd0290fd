"""`specbench data`: which prompt sets are here, whether they are what they should be, and how to get the others."""

from pathlib import Path
from statistics import mean, quantiles
from typing import Annotated

import typer
from rich.table import Table

from harness.prompts import load as prompts
from harness.prompts.chat_template import Renderer, lengths
from harness.prompts.fetch import fetch as download
from harness.prompts.manifest import known, manifest
from harness.prompts.prompt_set import PromptSet
from sglang_specbench.console import Console
from sglang_specbench.errors import UserError
from sglang_specbench.models import resolve

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, no_args_is_help=True, help="List, fetch and check prompt sets."
)
DataDir = Annotated[list[Path] | None, typer.Option(help="Folder with prompt sets; may be repeated.")]


@app.command("list")
def list_sets(data_dir: DataDir = None) -> None:
    """Every prompt set: rows, source, licence, output cap, and whether it is here."""
    table = Table("set", "rows", "cap", "source", "licence", "here", box=None)
    for name in sorted(known(data_dir or [])):
        entry = manifest(name, data_dir or [])
        cap = f"{entry.max_new_tokens}{' (EOS ignored)' if entry.ignore_eos else ''}"
        source = entry.source.hub or entry.source.url or "this package"
        pinned = f" @{entry.source.revision[:8]}" if entry.source.revision else ""
        table.add_row(name, str(entry.rows or "any"), cap, f"{source}{pinned}", entry.licence, _state(name, data_dir))
    Console().print(table)


@app.command()
def check(
    names: Annotated[list[str] | None, typer.Argument(help="Sets; default: all that are here.")] = None,
    data_dir: DataDir = None,
    tokenizer: Annotated[str, typer.Option(help="Model source: also count tokens of the first turn.")] = "",
    context_length: Annotated[int, typer.Option(help="Prompt and answer must fit into it.")] = 8192,
) -> None:
    """Count, compare with the pinned text, look for placeholders, repeats and prompts that are too long."""
    here = [name for name in names or sorted(known(data_dir or [])) if names or _state(name, data_dir) != "no"]
    found = [_find(name, data_dir) for name in here]
    renderer = _renderer(tokenizer) if tokenizer else None
    for entry in found:
        _say(entry)
        if renderer:
            _say_lengths(entry, renderer, context_length)
    if any(entry.report.refusals for entry in found):
        raise typer.Exit(1)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="The set.")],
    accept_licence: Annotated[bool, typer.Option(help="You have read the licence shown and accept it.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder; default: the user's cache folder.")] = None,
) -> None:
    """Download a prompt set from the hub; shows its licence first."""
    entry = manifest(name)
    typer.echo(f"{entry.title}: {entry.licence}\n{entry.note}")
    path = download(entry, accept_licence, out)
    typer.echo(f"wrote {path}")
    _say(_find(name, [path.parent]))


def _state(name: str, data_dir: list[Path] | None) -> str:
    try:
        return "refused" if prompts.find(name, data_dir or []).report.refusals else "yes"
    except prompts.MissingSet:
        return "no"


def _find(name: str, data_dir: list[Path] | None) -> PromptSet:
    try:
        return prompts.find(name, data_dir or [])
    except prompts.MissingSet as error:
        raise UserError(str(error)) from None  # its text names the command that adds the set


def _renderer(source: str) -> Renderer:
    return Renderer(resolve(source, "--tokenizer").require())


def _say(entry: PromptSet) -> None:
    typer.echo(f"{entry.name}: {entry.report.rows} rows, turns sha256 {entry.digest[:16]}, from {entry.report.source}")
    for text in entry.report.refusals:
        typer.echo(f"  REFUSED: {text}")
    for text in entry.report.notes:
        typer.echo(f"  note: {text}")


def _say_lengths(entry: PromptSet, renderer: Renderer, context_length: int) -> None:
    """Mean, median, 90th percentile and maximum by category; SPEED's lengths depend on the tokenizer."""
    room = context_length - entry.manifest.max_new_tokens
    for category, counts in lengths(entry.prompts, renderer).items():
        cuts = quantiles(counts, n=10) if len(counts) > 1 else counts * 9
        over = sum(count > room for count in counts)
        late = f"; {over} do not fit into {context_length} with the answer" if over else ""
        typer.echo(
            f"  {category or 'all'}: tokens mean {mean(counts):.1f} median {cuts[4]:.0f} "
            f"p90 {cuts[8]:.0f} max {max(counts)}{late}"
        )

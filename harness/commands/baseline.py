"""``specbench baseline``: show the run that the gate compares with, or accept another."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)
FileOption = Annotated[Path, typer.Option("--file", help="Where the baseline is recorded.")]
DEFAULT = Path("results/baseline.json")


@app.command()
def accept(
    run: Annotated[Path, typer.Argument(help="Run folder that becomes the baseline.")],
    why: Annotated[str, typer.Option("--why", help="The reason, kept beside it.")],
    file: FileOption = DEFAULT,
) -> None:
    """Make RUN the baseline."""
    from harness.gate import baseline

    accepted = baseline.accept(file, run, why)
    typer.echo(f"{file}: {accepted.run} is the baseline ({accepted.fingerprint[:12]})")
    kept = baseline.parts(run)
    size = sum(path.stat().st_size for path in kept) / 1e6
    typer.echo(f"keep or commit with it: {run}/cells, plan.json, sweep.toml ({len(kept)} files, {size:.1f} MB)")
    if note := baseline.one_repeat(run):
        typer.echo(f"note: {note}")


@app.command()
def show(file: FileOption = DEFAULT) -> None:
    """Print the baseline, and whether its run is unchanged."""
    from harness.gate import baseline

    found, run_dir = baseline.load(file)
    typer.echo(f"{run_dir}\naccepted {found.accepted}: {found.why}\ncells {found.fingerprint[:12]}, unchanged")

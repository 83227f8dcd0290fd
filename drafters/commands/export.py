"""``specbench export``: a trained arm, or a public checkpoint, as a folder that SGLang loads."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    source: Annotated[Path, typer.Argument(help="A training run, or a public drafter checkpoint (folders).")],
    folder: Annotated[Path, typer.Argument(help="Checkpoint folder to write.")],
    arm: Annotated[str | None, typer.Option(help="Which arm of the training run.")] = None,
) -> None:
    """Write a trained drafter as a checkpoint that SGLang loads."""
    from drafters.checkpoints.export import export_run, save
    from drafters.checkpoints.import_public import import_checkpoint

    if arm:
        export_run(source, arm, folder)
    else:
        save(folder, *import_checkpoint(source))
    typer.echo(f"{folder}: config.json and model.safetensors, checked")

"""``specbench export``: a trained arm, or a public checkpoint, as a folder that SGLang loads."""

from pathlib import Path
from typing import Annotated

import typer

from sglang_specbench.errors import UserError
from sglang_specbench.models import folder_of


def export(
    source: Annotated[str, typer.Argument(help="Folder of a training run; or a public drafter: folder or hub id.")],
    folder: Annotated[Path, typer.Argument(help="Checkpoint folder to write.")],
    arm: Annotated[str | None, typer.Option(help="Which arm of the training run.")] = None,
    best: Annotated[bool, typer.Option("--best", help="Weights that decoded best, instead of the last ones.")] = False,
    target: Annotated[
        str | None, typer.Option(help="The target (folder, mini:target, hub id), to compare a head or embedding.")
    ] = None,
) -> None:
    """Write a trained drafter as a checkpoint that SGLang loads."""
    from drafters.checkpoints.export import export_run, save
    from drafters.checkpoints.import_public import import_checkpoint
    from drafters.model.config import DrafterConfig
    from drafters.training.checkpoint import arms_of

    if Path(source).resolve() == folder.resolve():
        raise UserError(f"export: {source} is source and folder to write", "write to another folder")
    trained = arms_of(Path(source))
    if arm:
        export_run(Path(source), arm, folder, best=best)
        typer.echo(f"{folder}: config.json, model.safetensors and provenance.json, checked")
        return
    if trained:
        raise UserError(f"export: {source} is a training run", f"name the arm: --arm {' or --arm '.join(trained)}")
    beside = folder_of(target, "export: --target") if target else None
    done = import_checkpoint(folder_of(source, "export"), beside)
    save(folder, done.config, done.tensors, {"arm": DrafterConfig.from_json(done.config).arm})
    dropped = "".join(f"; {count} dropped: {reason}" for reason, count in done.dropped.items())
    typer.echo(f"{folder}: {len(done.tensors)} tensors taken{dropped}; checked")

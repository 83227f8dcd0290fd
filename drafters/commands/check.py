"""``specbench check``: a table of what is wrong with a checkpoint, exit code 1 when there is anything."""

from typing import Annotated

import typer
from rich.table import Table

from sglang_specbench.checkpoint import read_config, window
from sglang_specbench.checkpoint_kind import kind, row
from sglang_specbench.console import Console
from sglang_specbench.models import folder_of


def check(
    checkpoint: Annotated[str, typer.Argument(help="Folder, mini:NAME, trained:RUN/ARM, or a downloaded hub id.")],
    target: Annotated[
        str | None, typer.Option(help="The target, named alike, to compare sizes, depth and mask.")
    ] = None,
) -> None:
    """Find what SGLang would not tell you about a drafter checkpoint."""
    from drafters.checkpoints.check import check as findings_of

    folder = folder_of(checkpoint, "check", weights=False)  # that there are none is a finding
    findings = findings_of(folder, folder_of(target, "check: --target", weights=False) if target else None)
    console = Console()
    if not findings:
        arm = row(kind(read_config(folder / "config.json")))
        console.print(f"{folder}: nothing wrong; {arm.checkpoint}, {window(folder, arm) - 1} tokens drafted a block")
        return
    table = Table("where", "what is wrong", "remedy", title=str(folder))
    for finding in findings:
        table.add_row(finding.where, finding.problem, finding.remedy)
    console.print(table)
    raise typer.Exit(1)

"""``specbench report``: the answer of a run on one page."""

from pathlib import Path
from typing import Annotated

import typer

from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError


def report(
    run: Annotated[str, typer.Argument(help="Run folder, or: paper.")],
    format: Annotated[str, typer.Option(help="term, md or html.")] = "term",
    out: Annotated[Path | None, typer.Option(help="Write the page into this file; its ending says the format.")] = None,
    arms: Annotated[str, typer.Option(help="Only these arms and AR, separated by commas; others do not compete.")] = "",
) -> None:
    """The answer of a run on one page: who is fastest, by how much, how sure, and is it exact."""
    from harness.report import render
    from harness.report.read import read
    from sglang_specbench.atomic_file import make_folder, write_text

    if out is not None:
        format = {"txt": "term"}.get(out.suffix.removeprefix("."), out.suffix.removeprefix("."))
    if format not in render.FORMATS:
        option = "--format" if out is None else f"--out {out}"
        raise UserError(f"{option}: unknown format {format!r}", near_name(format, render.FORMATS))
    made = {"term": render.terminal, "md": render.markdown, "html": render.html}[format](read(run, arms))
    if out is None:
        typer.echo(made)
    else:
        make_folder(out.parent, "report: --out")
        write_text(out, made)
        typer.echo(f"report: {out}")

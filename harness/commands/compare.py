"""``specbench compare``: two runs side by side, one of which may be the paper."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError


def compare(
    first: Annotated[str, typer.Argument(help="run folder, or: paper")],
    second: Annotated[str, typer.Argument(help="run folder, or: paper; changes are relative to it")],
    format: Annotated[str, typer.Option(help="md, tex, csv, html or term")] = "term",
    out: Annotated[Path | None, typer.Option(help="write one file per quantity into this folder")] = None,
) -> None:
    """Two runs side by side, with intervals and a verdict."""
    from harness.gate.compare import QUANTITIES, as_table
    from harness.gate.compare import compare as differences_of
    from harness.load_results import load_results
    from harness.tables.render import FORMATS

    if format not in FORMATS:
        raise UserError(f"--format: unknown format {format!r}", near_name(format, FORMATS))
    runs = load_results(first), load_results(second)
    differences = differences_of(*runs)
    render, ending = FORMATS[format]
    for quantity in QUANTITIES:
        text = render(as_table(*runs, differences, quantity))
        if out is None:
            typer.echo(text)
        else:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"compare_{quantity}.{ending}").write_text(text, encoding="utf-8")
    counts = Counter(d.verdict for d in differences)
    typer.echo(", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()), err=format != "term")

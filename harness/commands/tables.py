"""``specbench tables``: the paper's tables and ours, from a run, from several, or from the paper itself."""

from pathlib import Path
from typing import Annotated

import typer

from sglang_specbench.config import near_name
from sglang_specbench.console import Console
from sglang_specbench.errors import UserError

PRINTED = 3  # tables: of the paper those of speed, concurrency and head cost; the others fill thousands of lines


def tables(
    runs: Annotated[list[str], typer.Argument(help="run folders that belong together, or: paper", metavar="RUN...")],
    table: Annotated[
        list[str],
        typer.Option(
            help="1 to 11, 16, 17, ledger, survival, speed, closure, noise, ties, scores, rounding; "
            "default: the first three that the run fills, or all of them with --out"
        ),
    ] = [],  # noqa: B006  (typer copies it)
    format: Annotated[str, typer.Option(help="md, tex, csv, html or term")] = "term",
    out: Annotated[Path | None, typer.Option(help="write one file per table into this folder")] = None,
    arms: Annotated[str, typer.Option(help="only these arms and AR, separated by commas; others do not compete")] = "",
    trace: Annotated[str, typer.Option(help="TABLE:ROW:COLUMN: print what is behind that number")] = "",
) -> None:
    """The paper's tables, and ours, from a run."""
    from harness.load_results import load_results
    from harness.paper import published
    from harness.stats.chosen import of_arms
    from harness.tables import registry
    from harness.tables import trace as tracing
    from harness.tables.render import FORMATS

    if format not in FORMATS:
        raise UserError(f"--format: unknown format {format!r}", near_name(format, FORMATS))
    folders = [Path(run) for run in runs if run != published.NAME]
    results = load_results(*runs)
    results = of_arms(results, arms)
    console = Console(soft_wrap=True)
    if trace:
        name, row, column = tracing.address(trace)
        for line in tracing.trace(results, folders, registry.table(results, name), row, column):
            console.print(line)
        return
    made = [registry.table(results, name) for name in table or registry.TABLES]
    render, ending = FORMATS[format]
    filled = [one for one in made if one.rows or table]
    shown = filled if table or out else filled[:PRINTED]
    for one in shown:
        if out is None:
            typer.echo(render(one))
        else:
            out.mkdir(parents=True, exist_ok=True)
            path = out / f"{registry.filename(one.name)}.{ending}"
            path.write_text(render(one), encoding="utf-8")
            console.print(str(path))
    if left := [one.name for one in filled[len(shown) :]]:
        remedy = f"--table NAME prints one, --out FOLDER writes all; --format: {', '.join(FORMATS)}"
        typer.echo(f"more tables: {', '.join(left)} ({remedy})", err=True)
    empty = [one.name for one in made if not one.rows]
    if empty and not table:
        typer.echo(f"nothing in {results.name} for tables: {', '.join(empty)}", err=True)

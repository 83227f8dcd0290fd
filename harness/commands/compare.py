"""``specbench compare``: two runs side by side (one may be the paper), or two arms of one run."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError


def compare(
    first: Annotated[str, typer.Argument(help="run folder, or: paper")],
    second: Annotated[str, typer.Argument(help="run folder, or: paper; changes are relative to it")] = "",
    arms: Annotated[
        tuple[str, str], typer.Option(help="two arms of the one run: the second is what changes are relative to")
    ] = ("", ""),
    format: Annotated[str, typer.Option(help="md, tex, csv, html or term")] = "term",
    out: Annotated[Path | None, typer.Option(help="write one file per quantity into this folder")] = None,
) -> None:
    """Two runs side by side, or two arms of one run, with intervals and a verdict."""
    if any(arms) == bool(second):
        raise UserError("compare: name two runs, or one run and --arms A B", "see specbench compare --help")
    if any(arms):
        _arms(first, arms, format, out)
    else:
        _runs(first, second, format, out)


def _runs(first: str, second: str, format: str, out: Path | None) -> None:
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


def _arms(run: str, arms: tuple[str, str], format: str, out: Path | None) -> None:
    from harness.load_results import load_results
    from harness.report import arm_tables, contrasts
    from harness.report.sentences import by_place, sentence, where
    from harness.stats.chosen import require
    from harness.tables.render import FORMATS

    if format not in FORMATS:
        raise UserError(f"--format: unknown format {format!r}", near_name(format, FORMATS))
    if arms[0] == arms[1]:
        raise UserError(f"--arms: {arms[0]} against itself", "name two arms")
    results = load_results(run)
    for arm in arms:
        require(results, arm)
    found = contrasts.contrasts(results, *arms)
    render, ending = FORMATS[format]
    for table in arm_tables.tables(results, found):
        if out is None:
            typer.echo(render(table))
        else:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"compare_{table.name}.{ending}").write_text(render(table), encoding="utf-8")
    for group in by_place(contrasts.averages(results, found)):
        if text := sentence(group):
            place = where(group[0].setting, len(results.benchmarks(group[0].setting.target)))
            typer.echo(f"{place}: {text}", err=format != "term")

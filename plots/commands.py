"""``specbench plot`` and ``specbench dashboard``."""

from pathlib import Path
from typing import Annotated

import typer

RunArgument = Annotated[
    str, typer.Argument(help="Run folder, training folder, or the word paper, or model: the analytic model's.")
]


def plot(
    run: RunArgument,
    out: Annotated[Path, typer.Option("--out", help="Folder for the figures.")] = Path("figures"),
    only: Annotated[
        str, typer.Option("--only", help="One figure by name; default: all that the run has data for.")
    ] = "",
    arms: Annotated[str, typer.Option("--arms", help="Only these arms and AR, separated by commas.")] = "",
) -> None:
    """Draw a run's figures, or a training's curves, as SVG, PDF and PNG."""
    from harness.load_results import load_run
    from harness.tables.build import doubts
    from plots import batch_speedup, style, theory, training
    from plots.figures import FIGURES
    from sglang_specbench.atomic_file import make_folder
    from sglang_specbench.config import near_name
    from sglang_specbench.errors import UserError

    if (run == "model" or training.is_training(Path(run))) and (only or arms):
        raise UserError(f"plot: {run} has its own drawings, always all", "leave --only and --arms out")
    make_folder(out, "plot: --out")
    if run == "model":
        for name, drawn in (("theory", theory.draw), ("batch_speedup", batch_speedup.draw)):
            with style.look():
                typer.echo(f"{name}: {style.save(drawn(), out, name)[0]}")
        return
    if training.is_training(Path(run)):
        typer.echo(f"training: {training.save(Path(run), out)[0]}")
        return
    if only and only not in FIGURES:
        raise UserError(f"plot: --only: unknown figure {only!r}", near_name(only, FIGURES))
    results, _ = load_run(run, arms)
    for name in [only] if only else FIGURES:
        draw, needs = FIGURES[name]
        with style.look(results.unaudited):
            figure = draw(results)
            if figure is not None:
                style.footnotes(figure, doubts(results))
            written = style.save(figure, out, name) if figure is not None else []
        typer.echo(
            f"{name}: {written[0]}" if written else f"{name}: {results.name} has no data for it; to fill it, {needs}"
        )


def dashboard(
    history: Annotated[Path, typer.Option("--history", help="History file of the gate.")] = Path(
        "results/history.jsonl"
    ),
    run: Annotated[str, typer.Option("--run", help="Newest run folder, or paper: its report is the first page.")] = "",
    arms: Annotated[str, typer.Option("--arms", help="Of the run only these arms and AR, separated by commas.")] = "",
    certificates: Annotated[Path, typer.Option("--certificates", help="Folder of audit certificates.")] = Path(
        "results/certificates"
    ),
    out: Annotated[Path, typer.Option("--out", help="Folder for the site.")] = Path("site"),
) -> None:
    """Build the static site; open index.html in any browser, no server needed."""
    from harness.audit.certificate_file import load_all
    from harness.gate import record
    from harness.gate.history import read
    from harness.load_results import load_run
    from plots.dashboard.site import Sources, build
    from sglang_specbench.errors import UserError

    entries = read(history)
    results, frames = load_run(run, arms) if run else (None, None)
    judged = ""
    if results is not None and frames is not None and (frames.cells.outcome == "ok").any():
        known = [e for e in entries if e.identity == record.identity(frames.cells)]
        if not known:
            entries.append(record.entry(Path(run).name, results, ""))
        judged = record.said((known or entries)[-1])
    if not entries and results is None:
        raise UserError(f"{history}: no runs in the history", "name one with --run RUN, or gate a run first")
    rows = frames.rows if frames else None
    sources = Sources(history=entries, results=results, rows=rows, certificates=load_all(certificates), judged=judged)
    pages = build(sources, out)
    typer.echo(f"{out / 'index.html'}: {len(pages)} pages, {len(entries)} runs in the history")

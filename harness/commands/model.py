"""`specbench model`: what speedup to expect, what a run's acceptance says, and how far a run is from the model.

What is asked follows from what is given: ``--run`` compares a run with the model, ``--survival`` takes acceptance from
a run, ``--target`` takes costs from rooflines, and without them the costs are those stated in passes of the target.
"""

import json
from typing import Annotated

import typer
from rich.table import Table

from harness.speedup_model.answers import Tables
from harness.speedup_model.question import Question
from sglang_specbench.console import Console
from sglang_specbench.errors import UserError

PIPED = 200  # columns where the reader is no terminal


def model(
    alpha: Annotated[
        float | None, typer.Option(min=0, max=1, help="Acceptance probability of a drafted token; default 0.8.")
    ] = None,
    speedup: Annotated[float | None, typer.Option(min=0, help="A measured speedup: what alpha does it imply?")] = None,
    survival: Annotated[
        str,
        typer.Option(metavar="RUN:ARM", help="Acceptance as a run measured it: fits, every width, how much to verify."),
    ] = "",
    drafted: Annotated[
        int | None, typer.Option(min=0, max=1024, help="Drafted tokens a block; default 4, or what the run drafted.")
    ] = None,
    cost: Annotated[float, typer.Option(min=0, help="Time of a draft pass, in target passes.")] = 0.05,
    parallel: Annotated[bool, typer.Option(help="One draft pass drafts the whole block.")] = False,
    slope: Annotated[float, typer.Option(min=0, help="Target passes that each verified draft adds.")] = 0.0,
    target: Annotated[str, typer.Option(help="Model preset: costs from rooflines instead.")] = "",
    drafter: Annotated[
        str, typer.Option(help="Its drafter: block, or a model preset that drafts token by token.")
    ] = "block",
    hardware: Annotated[str, typer.Option(help="Hardware preset.")] = "h100",
    gpus: Annotated[int, typer.Option(min=1, help="GPUs that share the model (tensor parallel).")] = 1,
    batch: Annotated[str, typer.Option(metavar="B|FIRST:LAST", help="Sequences a pass, in powers of two.")] = "1:256",
    positions: Annotated[
        int | None, typer.Option(min=1, help="Positions of a verification, a sequence: one more than drafted.")
    ] = None,
    context: Annotated[int, typer.Option(min=0, help="Cached tokens of a sequence.")] = 512,
    t0: Annotated[
        str, typer.Option(metavar="MS|RUN", help="Fixed time of a pass, or the run whose AR shows it.")
    ] = "0",
    run: Annotated[str, typer.Option(help="Run folder or paper: predicted against measured.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """The analytic speedup model, and measured against predicted."""
    given = {"--alpha": alpha is not None, "--speedup": speedup is not None, "--survival": survival, "--run": run}
    named = [option for option, value in given.items() if value]
    if len(named) > 1:
        raise UserError(f"model: {' and '.join(named)} do not go together", "give one of them")
    question = Question.asked(
        alpha=0.8 if alpha is None else alpha,
        drafted=drafted,
        positions=positions,
        cost=cost,
        parallel=parallel,
        slope=slope,
        target=target,
        drafter=drafter,
        hardware=hardware,
        gpus=gpus,
        batches=batches(batch),
        context=context,
    )
    found = answer(question, speedup, survival, t0, run)
    if as_json:
        typer.echo(json.dumps(found, indent=1))
    else:
        console = Console()
        show(found, console if console.is_terminal else Console(width=PIPED))


def answer(question: Question, speedup: float | None, survival: str, t0: str, run: str) -> Tables:
    """The tables of whichever question the options make."""
    from harness.commands.model_run import fixed_seconds, run_tables, survival_tables

    if run:
        return run_tables(run, question)
    question = question.with_t0(fixed_seconds(t0, question))
    if survival:
        return survival_tables(survival, question)
    if speedup is not None:
        return question.alpha_tables(speedup)
    return question.roofline_tables() if question.target else question.block_tables()


def batches(text: str) -> list[int]:
    """``8`` or ``1:1024``: the first, every power of two between, the last."""
    first, colon, last = text.partition(":")
    try:
        low, high = int(first), int(last if colon else first)
    except ValueError:
        raise UserError(f"model: --batch {text!r} is no batch", "write 8, or 1:1024") from None
    if not 1 <= low <= high <= 1 << 20:
        raise UserError(f"model: --batch {text}: not between 1 and {1 << 20:,}, first to last", "write 1:1024")
    return sorted({low, *(b for b in (1 << k for k in range(21)) if low < b < high), high})


def show(found: Tables, console: Console) -> None:
    """One table each, four significant digits; assumptions as sentences."""
    for title, lines in found.items():
        if title == "assumptions":
            console.print(
                "This assumes:", *(f"\n- {line['assumes']}" for line in lines), soft_wrap=True, highlight=False
            )
            continue
        table = Table(title=title, box=None, title_justify="left")
        for name in lines[0] if lines else ():
            table.add_column(name, no_wrap=name == "setting")
        for line in lines:
            table.add_row(*(f"{v:.4g}" if isinstance(v, float) and v < 1000 else _whole(v) for v in line.values()))
        console.print(table)


def _whole(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else str(value)

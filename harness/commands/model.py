"""`specbench model`: what speedup to expect, what a run's acceptance says, and how far a run is from the model.

What is asked follows from what is given: ``--run`` compares a run with the model, ``--survival`` takes acceptance from
a run, ``--tree`` and ``--rejection`` ask about token trees, ``--target`` takes costs from rooflines, and without it the
costs are those stated in passes of the target. An option that the question does not read is refused.
"""

import json
import math
from typing import Annotated, Any

import typer
from rich.table import Table

from harness.commands.model_doubts import TITLE as DOUBTS
from harness.commands.model_options import ONE_BATCH, batches, check_options
from harness.speedup_model.answers import Tables
from harness.speedup_model.question import HARDWARE, Question
from sglang_specbench.console import Console
from sglang_specbench.errors import UserError

ROUNDING = 1e-9  # what sums leave of nothing
PIPED = 200  # columns where the reader is no terminal
PRINTS = {DOUBTS: "In doubt:", "assumptions": "This assumes:"}  # printed as sentences


def model(
    ctx: typer.Context,
    alpha: Annotated[
        float | None, typer.Option(min=0, max=1, help="Acceptance probability of a drafted token; default 0.8.")
    ] = None,
    speedup: Annotated[float | None, typer.Option(min=0, help="A measured speedup: what alpha does it imply?")] = None,
    survival: Annotated[
        str,
        typer.Option(metavar="RUN:ARM", help="Acceptance as a run measured it: fits, every width, how much to verify."),
    ] = "",
    widths: Annotated[
        str,
        typer.Option(
            metavar="W:PASSES,...|RUN,...",
            help="Its costs from measured blocks of several widths: in AR passes, or runs of the arm at other widths.",
        ),
    ] = "",
    tree: Annotated[
        int | None,
        typer.Option(metavar="NODES", help="The best token tree of so many drafted nodes; needs --marginals."),
    ] = None,
    marginals: Annotated[
        str,
        typer.Option(metavar="P,...|FILE", help="Chance of each candidate of a depth: of all, or a CSV line a depth."),
    ] = "",
    rejection: Annotated[
        str,
        typer.Option(
            metavar="P,...:Q,...", help="Target's and drafter's chance of each token: is some child of a node accepted?"
        ),
    ] = "",
    drafted: Annotated[
        int | None, typer.Option(min=0, max=1024, help="Drafted tokens a block; default 4, with --target 3.")
    ] = None,
    cost: Annotated[float, typer.Option(min=0, help="Time of a draft pass, in target passes.")] = 0.05,
    parallel: Annotated[
        bool | None,
        typer.Option(help="One draft pass drafts a block; default: as the arm of --survival, else no."),
    ] = None,
    slope: Annotated[float, typer.Option(min=0, help="Target passes that each verified draft adds.")] = 0.0,
    target: Annotated[str, typer.Option(help="Model preset: costs from rooflines instead.")] = "",
    drafter: Annotated[
        str, typer.Option(help="Its drafter: block, or a model preset that drafts token by token.")
    ] = "block",
    hardware: Annotated[
        str, typer.Option(help=f"Hardware preset; default that of --run or --survival, else {HARDWARE}.")
    ] = "",
    gpus: Annotated[int, typer.Option(min=1, max=1024, help="GPUs that share the model (tensor parallel).")] = 1,
    batch: Annotated[
        str,
        typer.Option(
            metavar="B|FIRST:LAST",
            help="Sequences a pass, in powers of two; default 1:256, or 1 where one is asked for.",
        ),
    ] = "",
    positions: Annotated[
        int | None,
        typer.Option(min=1, max=1025, help="Positions of a verification, a sequence: one more than drafted."),
    ] = None,
    context: Annotated[int, typer.Option(min=0, max=1 << 30, help="Cached tokens of a sequence.")] = 512,
    t0: Annotated[
        str, typer.Option(metavar="MS|RUN", help="Fixed time of a pass, or the run whose AR shows it.")
    ] = "0",
    run: Annotated[str, typer.Option(help="Run folder or paper: predicted against measured.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """The analytic speedup model, and measured against predicted."""
    for name in ("alpha", "speedup", "cost", "slope"):
        if not math.isfinite(ctx.params[name] or 0):
            raise UserError(f"model: --{name} {ctx.params[name]} is no number", "give a finite one")
    asked = check_options(ctx)
    if tree is not None and not marginals:
        raise UserError("model: --tree needs the candidates' chances", "add --marginals 0.6,0.2,0.08, or a CSV file")
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
        batches=batches(batch or ("1" if asked in ONE_BATCH else "1:256"), one=asked in ONE_BATCH),
        context=context,
    )
    found = answer(asked, ctx.params, question)
    if as_json:
        typer.echo(json.dumps(_finite(found), indent=1, allow_nan=False))
    else:
        console = Console()
        show(found, console if console.is_terminal else Console(width=PIPED))


def answer(asked: str, given: dict[str, Any], question: Question) -> Tables:
    """The tables of the question that the option ``asked`` makes."""
    from harness.commands.model_doubts import with_doubts
    from harness.commands.model_run import fixed_seconds, run_tables
    from harness.commands.model_survival import survival_tables
    from harness.speedup_model import tree_answers

    if asked == "run":
        return run_tables(given["run"], question)
    if asked == "rejection":
        return tree_answers.rejection_tables(given["rejection"])
    seconds, doubts = fixed_seconds(given["t0"], question)
    question = question.with_t0(seconds)
    if asked == "survival":
        found = survival_tables(given["survival"], question, given["widths"])
    elif asked == "tree":
        marginals = tree_answers.read_marginals(given["marginals"])
        batch = question.batches[0]
        found = tree_answers.tree_tables(marginals, given["tree"], question.costs, batch, question.assumes)
    elif asked == "speedup":
        found = question.alpha_tables(given["speedup"])
    else:
        found = question.roofline_tables() if question.target else question.block_tables()
    return with_doubts(found, doubts)


def show(found: Tables, console: Console) -> None:
    """One table each, four significant digits; doubts and assumptions as sentences."""
    for title, lines in found.items():
        if title in PRINTS:
            texts = (f"\n- {text}" for line in lines for text in line.values())
            console.print(PRINTS[title], *texts, soft_wrap=True, highlight=False, markup=False)
            continue
        table = Table(title=title, box=None, title_justify="left")
        for name in lines[0] if lines else ():
            table.add_column(name, no_wrap=name == "setting")
        for line in lines:
            table.add_row(*map(_cell, line.values()))
        console.print(table)


def _finite(value: Any) -> Any:
    """For JSON, which has no nan and no inf: null."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return "0" if abs(value) < ROUNDING else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"

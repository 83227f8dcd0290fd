"""The root of the ``specbench`` command: names, one-line helps, and the one place where errors become exit codes.

A command's module is imported only when that command is called (entry-point group ``specbench.commands``), so that
``specbench --help`` starts at once and works with the base alone installed.
"""

import importlib.metadata
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from sglang_specbench import __version__, way_out
from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError

COMMANDS = {
    "doctor": "Is this machine fit, what runs here and why not.",
    "selftest": "Does every arm run here, is it what it says, and is it exact: one page at the end.",
    "pin": "What another SGLang wheel changes for us, by name.",
    "arms": "The arms: flags, proof demanded, proposals, known approximations.",
    "plan": "Expand a sweep into its cells and launches; --preflight checks their server arguments.",
    "run": "Measure what is missing of a sweep; resumes where it was stopped.",
    "serve": "Start the server that a run would start, say its URL, and end it with Ctrl-C.",
    "status": "What of a run is done, failed or missing.",
    "data": "List, fetch and check prompt sets.",
    "tables": "The paper's tables, and ours, from a run.",
    "compare": "Two runs side by side, or two arms of one run, with intervals and a verdict.",
    "report": "The answer of a run on one page: who is fastest, by how much, how sure, and is it exact.",
    "gate": "Candidate against baseline: exit 0 ok, 1 regression, 3 inconclusive, 4 invalid, 5 infrastructure.",
    "baseline": "Show or accept the baseline that the gate compares with.",
    "audit": "Does an arm still sample from the target's distribution.",
    "model": "The analytic speedup model, and measured against predicted.",
    "generate": "Regenerate the answers of a corpus with the target.",
    "train": "Train drafters jointly under one contract.",
    "export": "Write a trained drafter as a checkpoint that SGLang loads.",
    "check": "Find what SGLang would not tell you about a drafter checkpoint.",
    "plot": "Figures from a run.",
    "dashboard": "Build the static site of a history of runs.",
}


class LazyGroup(TyperGroup):
    """A group whose commands are entry points, loaded when called.

    Typed with Any: typer 0.16 builds on the click package, later releases on a copy of it inside typer.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any | None:
        if cmd_name not in COMMANDS:
            raise UserError(f"unknown command {cmd_name!r}", near_name(cmd_name, COMMANDS))
        return _load(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _load(name: str) -> Any:
    found = importlib.metadata.entry_points(group="specbench.commands", name=name)
    target: Any = next(iter(found)).load()
    if isinstance(target, typer.Typer):
        command = typer.main.get_command(target)
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name=name, help=target.__doc__)(target)
        command = typer.main.get_command(app)
    command.name = name
    return command


app = typer.Typer(cls=LazyGroup, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback(help="Attested, exact measurements of speculative-decoding drafters on SGLang.")
def root(
    version: bool = typer.Option(False, "--version", is_eager=True, help="Print the version and leave."),
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; whatever a command raises leaves by `way_out`."""
    way_out.prepare()
    try:
        code = app(prog_name="specbench", standalone_mode=False)
        way_out.flush()
    except BaseException as error:  # noqa: BLE001 - the one handler
        code = way_out.leave(error)
    sys.exit(code)

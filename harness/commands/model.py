"""`specbench model`: what speedup to expect, and how far a run is from it."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from harness.speedup_model import presets
from harness.speedup_model.roofline import critical_context, free_batch, step
from harness.speedup_model.speedup import (
    autoregressive_draft,
    best_length,
    expected_tokens,
    iid_survival,
    linear_verification,
    parallel_draft,
    speedup,
)
from sglang_specbench.console import Console
from sglang_specbench.errors import UserError

PIPED = 160  # columns where the reader is no terminal
LONGEST = 64  # drafted tokens that the best length is looked for in
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
Lines = list[dict[str, Any]]


def model(
    alpha: Annotated[float, typer.Option(min=0, max=1, help="Acceptance probability of a drafted token.")] = 0.8,
    drafted: Annotated[int, typer.Option(min=0, help="Drafted tokens a block.", max=1024)] = 4,
    cost: Annotated[float, typer.Option(min=0, help="Time of a draft pass, in target passes.")] = 0.05,
    parallel: Annotated[bool, typer.Option(help="One draft pass drafts the whole block.")] = False,
    slope: Annotated[float, typer.Option(min=0, help="Target passes that each verified draft adds.")] = 0.0,
    target: Annotated[str, typer.Option(help="Model preset: print the roofline of its passes.")] = "",
    hardware: Annotated[str, typer.Option(help="Hardware preset.")] = "h100",
    positions: Annotated[int, typer.Option(min=1, help="Positions of a pass, a sequence.")] = 4,
    context: Annotated[int, typer.Option(min=0, help="Cached tokens of a sequence.")] = 512,
    run: Annotated[str, typer.Option(help="Run folder or paper: predicted against measured.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """The analytic speedup model, and measured against predicted."""
    if run:
        found = {"predicted against measured": measured_lines(run, target, hardware, context)}
    elif target:
        found = roofline_lines(target, hardware, positions, context)
    else:
        found = {"independent acceptance": iid_lines(alpha, drafted, cost, parallel, slope)}
    if as_json:
        typer.echo(json.dumps(found, indent=1))
    else:
        console = Console()
        show(found, console if console.is_terminal else Console(width=PIPED))


def iid_lines(alpha: float, drafted: int, cost: float, parallel: bool, slope: float) -> Lines:
    """The block asked for, and the length that pays best."""
    draft = parallel_draft(cost) if parallel else autoregressive_draft(cost)
    verify = linear_verification(slope)
    best, _ = best_length(iid_survival(alpha, LONGEST), draft, verify)
    return [
        {
            "block": name,
            "drafted": length,
            "expected tokens": expected_tokens(survival),
            "speedup": speedup(survival, draft, verify),
        }
        for name, length in (("asked for", drafted), ("best", best))
        for survival in [iid_survival(alpha, length)]
    ]


def roofline_lines(target: str, hardware: str, positions: int, context: int) -> dict[str, Lines]:
    """Where verification is free, and the parts of a pass by batch."""
    shape, device = presets.shape(target), presets.hardware(hardware)
    end = free_batch(shape, device, positions, context)
    regime = {
        "model": target,
        "hardware": hardware,
        "positions": positions,
        "critical context": critical_context(shape, device, positions),
        "context": context,
        "free up to batch": "any" if end is None else end,
    }
    parts = [(batch, step(shape, device, batch, positions, context)) for batch in BATCHES]
    lines = [
        {"batch": b, **{k.replace("_s", " ms"): 1000 * v for k, v in asdict(s).items()}, "ms": 1000 * s.seconds,
         "regime": s.regime}
        for b, s in parts
    ]  # fmt: skip
    return {"regime": [regime], "passes": lines}


def measured_lines(run: str, target: str, hardware: str, context: int) -> Lines:
    """Every setting of the run by the preset of its target's name, or by ``target`` where that is none.

    With ``target``, targets that have another preset of their own are left out.
    """
    from harness.load_results import load_results
    from harness.speedup_model.predict import predictions

    results = load_results(run)
    known = presets.tables("models.toml")
    nameless = [name for name in results.targets() if name.lower() not in known]
    if nameless and not target:
        raise UserError(f"model: --run {run}: its target {nameless[0]!r} is no preset", "name one with --target")
    wanted = [name for name in results.targets() if not target or name in nameless or name.lower() == target.lower()]
    if not wanted:
        raise UserError(f"model: --run {run} has no target {target!r}", f"it has {', '.join(results.targets())}")
    shapes = {name: presets.shape(target or name) for name in wanted}
    return [
        {
            "setting": str(p.setting),
            "tau": p.tau,
            "AR token ms": p.token_ms,
            "overhead ms": p.overhead_ms,
            "block ms": p.block_ms,
            "predicted": p.predicted,
            "measured": p.measured,
            "residual %": 100 * p.residual,
        }
        for name, shape in shapes.items()
        for p in predictions(results, shape, presets.hardware(hardware), context)
        if p.setting.target == name
    ]


def show(found: dict[str, Lines], console: Console) -> None:
    """One table each, four significant digits."""
    for title, lines in found.items():
        table = Table(title=title, box=None, title_justify="left")
        for name in lines[0] if lines else ():
            table.add_column(name, no_wrap=name == "setting")
        for line in lines:
            table.add_row(*(f"{v:.4g}" if isinstance(v, float) and v < 1000 else _whole(v) for v in line.values()))
        console.print(table)


def _whole(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else str(value)

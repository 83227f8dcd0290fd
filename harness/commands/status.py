"""`specbench status`: how far a run has come, and what went wrong in it."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from harness.schema.header import Header
from harness.store import run as store
from harness.sweep.plan import Plan, PlannedLaunch, read
from sglang_specbench.console import Console


def status(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print counts and failures as JSON.")] = False,
) -> None:
    """What of a run is done, failed or missing."""
    made, headers = read(run), store.headers(run)
    failures = [header for header in headers.values() if header.outcome != "ok"]
    if as_json:
        typer.echo(json.dumps(_summary(made, headers, failures), indent=1))
    else:
        _show(run, made, headers, failures)
    if failures:
        raise typer.Exit(1)


def eta(started: Sequence[datetime], now: datetime, missing: int) -> timedelta | None:
    """Time for ``missing`` cells at the pace since the first of those that ``started``; None before two have."""
    if len(started) < 2 or not missing:
        return None
    return (now - min(started)) / len(started) * missing


def _summary(made: Plan, headers: Mapping[str, Header], failures: Sequence[Header]) -> dict[str, object]:
    return {
        "planned": len(made.cells),
        "outcomes": dict(Counter(header.outcome for header in headers.values())),
        "missing": sum(cell.id not in headers for cell in made.cells),
        "failures": [
            {"cell": f.cell.id, "label": f.cell.label, "outcome": f.outcome, "reason": f.reason} for f in failures
        ],
    }


def _show(run: Path, made: Plan, headers: Mapping[str, Header], failures: Sequence[Header]) -> None:
    console = Console()
    table = Table("allocation", "launch", "done", "failed", "missing", box=None)
    for allocation in made.allocations:
        for launch in allocation.launches:
            table.add_row(allocation.id, f"{launch.arm}/{launch.proposal}", *map(str, _counts(launch, headers)))
    console.print(table)
    missing = sum(cell.id not in headers for cell in made.cells)
    console.print(
        f"{len(made.cells)} planned, {len(headers) - len(failures)} done, {len(failures)} failed, {missing} missing"
    )
    started = [datetime.fromisoformat(header.started_at) for header in headers.values() if header.started_at]
    left = eta(started, datetime.now(UTC), missing)
    if left:
        console.print(f"at the pace so far the rest takes {timedelta(seconds=round(left.total_seconds()))}")
    for failed in failures:
        console.print(f"{failed.outcome}: {failed.cell.label}: {failed.reason}{_log(run, failed)}", soft_wrap=True)


def _counts(launch: PlannedLaunch, headers: Mapping[str, Header]) -> tuple[int, int, int]:
    outcomes = [headers[cell.id].outcome if cell.id in headers else "" for cell in launch.cells]
    done, missing = outcomes.count("ok"), outcomes.count("")
    return done, len(outcomes) - done - missing, missing


def _log(run: Path, failed: Header) -> str:
    """Where the whole server log lies, if it is still there."""
    logs = sorted(p for p in (run / "logs").glob("*") if failed.launch in p.name) if failed.launch else []
    return f" (log: {logs[0]})" if logs else ""

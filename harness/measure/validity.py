"""Is it sound: what forbids to measure on a server, what forbids a measured number, and what a reader must doubt.

Pure. A refusal makes the cells of a launch not_attested, an objection makes its cell invalid, a caution travels with
the number.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType

from harness.measure import acceptance_drift
from harness.schema.cell import Cell
from harness.schema.request import Row
from harness.serve.arguments import disagreements
from harness.serve.responses import ServerInfo
from harness.store import cell_file, row_checks
from sglang_specbench.arms import get_arm
from sglang_specbench.attestation import mismatches
from sglang_specbench.capture import asked_sizes, capture_faults
from sglang_specbench.refused_log import check_log

FEW_BLOCKS = 200
SLOW_FIRST = 3.0  # times the median time per token
DRIFT = 0.10  # second half slower per block than the first


def refusals(info: ServerInfo, cell: Cell, log: str, remote: bool, window: int) -> list[str]:
    """Why a server that says ``info`` of itself and printed ``log`` must not be measured as ``cell``'s.

    ``window`` is the positions that its drafter's checkpoint lets it verify. A ``remote`` one without an attestation
    is let through if its arguments are the cell's: its rows are marked. Its log cannot be read.
    """
    arm = get_arm(cell.arm)
    unlike = disagreements(info.arguments, cell, arm, info.running)
    if remote and info.attestation is None:
        return unlike
    found = mismatches(
        info.attestation,
        arm,
        arm.proposal(cell.temperature),
        seed=cell.seed,
        target_digest=cell.target_digest,
        draft_digest=cell.draft_digest,
        device=cell.device,
        dtype=cell.dtype,
        capacity=cell.capacity,
        window=window,
    )
    captured = capture_faults(
        info.attestation,
        arm,
        sizes=asked_sizes(cell.capacity, cell.server),
        log=None if remote else log,
    )
    found += [text for text in (*unlike, *captured) if text not in found]
    return found if remote else found + _log_refusals(log, cell)


def objections(
    rows: Sequence[Row],
    cell: Cell,
    window: int,
    after: ServerInfo,
    log: str,
    counters: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:
    """Why the cell must not count. ``after`` and ``log`` ("" = not ours to read): the server at the cell's end.

    Rows are judged by the same functions that judge them when they are read back. ``counters`` are the server's own.
    """
    table = cell_file.as_table(rows)
    found = (_log_refusals(log, cell) if log else []) + departures(after)
    return found + row_checks.defects(table, cell, window) + row_checks.counter_defects(table, counters)


def departures(info: ServerInfo) -> list[str]:
    """Fast or exact paths that a server has left since it started."""
    found = [f"the server left a path: {text}" for text in info.downgrades]
    return found if info.verification in ("exact", "") else [*found, f"verification is {info.verification}"]


def _log_refusals(log: str, cell: Cell) -> list[str]:
    arm = get_arm(cell.arm)
    return check_log(log, arm, arm.proposal(cell.temperature), cell.device)


def cautions(rows: Sequence[Row], wall_s: float, cell: Cell, min_wall_s: float) -> list[str]:
    """Doubts as text, each with what to do about it."""
    found = []
    blocks = sum(row.verify_ct or 0 for row in rows)
    if cell.proposal != "none" and blocks < FEW_BLOCKS:
        found.append(f"{blocks} verify blocks, fewer than {FEW_BLOCKS}: take more prompts")
    if cached := sum(row.cached_tokens for row in rows):
        found.append(f"{cached} prompt tokens came from a prefix cache: pass --disable-radix-cache")
    if (most := row_checks.reached(cell_file.as_table(rows))) < cell.concurrency:
        found.append(f"concurrency {cell.concurrency} was never reached, at most {most}: take more prompts")
    if retracted := sum(row.retractions > 0 for row in rows):
        found.append(f"{retracted} requests were retracted: lower the concurrency or give the server more memory")
    if wall_s < min_wall_s:
        found.append(f"measured for {wall_s:.1f} s, less than {min_wall_s:g} s: take more prompts")
    found += acceptance_drift.cautions(rows)
    return found + (_pace(rows) if cell.concurrency == 1 else [])


def _pace(rows: Sequence[Row]) -> list[str]:
    """Cautions about a cell's course in time, which only concurrency 1 shows cleanly."""
    rates = [(row.done_s - row.sent_s) / max(row.completion_tokens, 1) for row in rows]
    found = []
    if len(rates) >= 4 and rates[0] > SLOW_FIRST * median(rates[1:]):
        found.append(f"the first request took {rates[0] / median(rates[1:]):.1f} times the usual: warm-up fell short")
    half = len(rows) // 2
    if half >= 8 and (ratio := _block_time(rows[half:]) / _block_time(rows[:half])) > 1 + DRIFT:
        found.append(f"the second half was {100 * (ratio - 1):.0f} % slower a block than the first: a busy machine?")
    return found


def _block_time(rows: Sequence[Row]) -> float:
    """Seconds per verify block, or per token without blocks."""
    units = sum(row.verify_ct or row.completion_tokens for row in rows)
    return sum(row.done_s - row.sent_s for row in rows) / max(units, 1)

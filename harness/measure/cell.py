"""One cell on a running server: warm up, flush, drive, ask the server again, judge.

Yields a `Measured` whatever happens: a failure is a result with a reason. Starts and ends nothing, writes nothing.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.measure.closed_loop import ClosedLoop, Render
from harness.measure.validity import cautions, objections
from harness.measure.warmup import warm_up
from harness.prompts.tokenized import Conversation
from harness.schema.cell import Cell
from harness.schema.failure import Failure
from harness.schema.request import Row
from harness.serve.client import Client, Sampling
from harness.serve.machine_load import Snapshot, between

T = TypeVar("T")
TRACEBACK = "Traceback (most recent call last)"
WATCH_S = 0.25  # how often the server's process and log are looked at
LAST_WORDS_S = 3.0  # a closed connection is noticed before the process has ended


@dataclass(kw_only=True)
class Measured:
    """What a cell's file will hold, but for what the launch knows."""

    outcome: str = "ok"
    reason: str = ""
    rows: list[Row] = field(default_factory=list)
    wall_s: float | None = None
    warmup: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)  # `machine_load.between`
    counters: dict[str, int] = field(default_factory=dict)  # the server's own, of the measured part
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A server as `measure` needs it, and how this run asks."""

    url: str
    watch: Callable[[], Failure | None]  # what has gone wrong with the server since the last look
    log: Callable[[], str]  # what the server has printed
    window: int  # positions verified a block
    render: Render
    request_timeout_s: float
    min_wall_s: float
    keep_output: bool
    on_done: Callable[[], None]
    look: Callable[[], Snapshot] | None = None  # at the machine; None where the server runs on another


def measure(cell: Cell, conversations: Sequence[Conversation], bench: Bench) -> Measured:
    """Measure ``cell``; never raises for what the server does."""
    measured = Measured()
    try:
        asyncio.run(_watched(_measure(cell, conversations, bench, measured), bench.watch))
    except Failure as failure:
        measured.outcome, measured.reason, measured.wall_s = failure.outcome, failure.reason, None
    return measured


def prompts_digest(conversations: Sequence[Conversation]) -> str:
    """Sha256 (hex) over the rendered first turns, in order."""
    return hashlib.sha256("".join(c.first_hash for c in conversations).encode()).hexdigest()


async def _measure(cell: Cell, conversations: Sequence[Conversation], bench: Bench, measured: Measured) -> None:
    sampling = Sampling.of(cell)
    async with Client(bench.url, bench.request_timeout_s, cell.stream) as client:
        measured.warmup = await warm_up(client, conversations, sampling, cell.concurrency)
        await client.freeze_gc()  # SGLang's own call at start is a race that it loses now and then
        await client.flush_cache()
        tracebacks = bench.log().count(TRACEBACK)
        loop = ClosedLoop(
            client=client,
            sampling=sampling,
            render=bench.render,
            name=cell.id,
            keep_output=bench.keep_output,
            on_done=bench.on_done,
            rows=measured.rows,
        )
        counted, seen = await client.counters(), bench.look() if bench.look else None
        measured.wall_s = await loop.run(conversations, cell.concurrency)
        if bench.look and seen:
            measured.machine = between(seen, bench.look())
        if counted and (now := await client.counters()):
            measured.counters = now.since(counted)
        after = await client.info()
    if found := objections(measured.rows, cell, bench.window, after, bench.log(), measured.counters):
        raise Failure("invalid", "; ".join(found))
    if bench.log().count(TRACEBACK) > tracebacks:
        measured.cautions = ("the server printed a traceback while the cell ran: read its log",)
    measured.cautions += tuple(cautions(measured.rows, measured.wall_s, cell, bench.min_wall_s))


async def _watched(work: Coroutine[Any, Any, T], watch: Callable[[], Failure | None]) -> T:
    """``work``, ended early by what ``watch`` finds; a lost connection waits for the server's own last words."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            if failure := watch():
                raise failure
            await asyncio.wait({task}, timeout=WATCH_S)
        return task.result()
    except Failure as failure:
        if failure.outcome == "server_died":
            raise (await _last_words(watch)) or failure from None
        raise
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Failure):
            await task


async def _last_words(watch: Callable[[], Failure | None]) -> Failure | None:
    for _ in range(int(LAST_WORDS_S / WATCH_S)):
        if failure := watch():
            return failure
        await asyncio.sleep(WATCH_S)
    return None

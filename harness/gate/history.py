"""The history: one line per judged run in ``results/history.jsonl``, append-only.

A line is written with one ``write`` on a file opened for appending, under an exclusive lock, so that concurrent writers
interleave lines and never bytes; a reader skips nothing: a broken line is an error that names its number.

Line schema 1: schema, run, time (UTC), commit, device_name, versions, noise (sd of log throughput between A/A
allocations), verdict (of the gate, or ""), unaudited (arm -> why; null in lines from before it was recorded), identity
(of the run's cells: `record.identity`), against and baseline (name and identity of the accepted run; all three "" in
lines from before they were recorded), points: [{target, arm, metric, setting, value, low, high}].
"""

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sglang_specbench.atomic_file import make_folder
from sglang_specbench.config import from_dict
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import json_lines

SCHEMA = 1
REMEDY = "remove or correct that line"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One number of a run. ``setting`` is "pooled" or a setting's text."""

    target: str
    arm: str
    metric: str  # tau | throughput | speedup | head_ms
    setting: str
    value: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if not self.value > 0:
            raise ValueError(f"{self.metric} {self.value:g} is not above 0: remove or correct that line")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line."""

    run: str
    time: str
    commit: str
    device_name: str
    versions: dict[str, str]
    noise: float | None = None
    verdict: str = ""
    unaudited: dict[str, str] | None = None
    identity: str = ""
    against: str = ""
    baseline: str = ""
    points: tuple[Point, ...] = field(default_factory=tuple)
    schema: int = SCHEMA


def append(path: Path, entry: Entry) -> None:
    """Add ``entry`` as the last line of ``path``; creates the file."""
    line = json.dumps(asdict(entry), sort_keys=True, allow_nan=False).encode() + b"\n"
    make_folder(path.parent, "gate: --history")
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        line = _after_torn(path) + line
        written = os.write(handle, line)
        if written != len(line):  # a full disk can cut a write: take the torn line back
            os.ftruncate(handle, os.fstat(handle).st_size - written)
            raise UserError(f"{path}: the disk is full", "free space and gate again", exit_code=5)
    finally:
        os.close(handle)


def read(path: Path) -> list[Entry]:
    """All entries in file order; `UserError` naming the line that is not one."""
    if not path.is_file():
        return []
    return [_entry(where, row) for where, row in json_lines(path, REMEDY)]


def _after_torn(path: Path) -> bytes:
    """A line end, where a writer was killed within the last line: what is added starts a line of its own."""
    with path.open("rb") as handle:
        size = handle.seek(0, os.SEEK_END)
        handle.seek(max(0, size - 1))
        return b"" if handle.read(1) in (b"", b"\n") else b"\n"


def _entry(where: str, row: dict[str, Any]) -> Entry:
    if row.get("schema") != SCHEMA:
        raise UserError(f"{where}: schema {row.get('schema')!r:.80} is not {SCHEMA}", "read it with its own version")
    entry = from_dict(Entry, row, where)
    try:
        datetime.fromisoformat(entry.time)
    except ValueError:
        raise UserError(f"{where}: time {entry.time[:80]!r} is no time", REMEDY) from None
    return entry

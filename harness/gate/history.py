"""The history: one line per judged run in ``results/history.jsonl``, append-only.

A line is written with one ``write`` on a file opened for appending, under an exclusive lock, so that concurrent writers
interleave lines and never bytes; a reader skips nothing: a broken line is an error that names its number.

Line schema 1: schema, run, time (UTC), commit, device_name, versions, noise (sd of log throughput between A/A
allocations), verdict (of the gate, or ""), points: [{target, arm, metric, setting, value, low, high}].
"""

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sglang_specbench.errors import UserError

SCHEMA = 1


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
    points: tuple[Point, ...] = field(default_factory=tuple)
    schema: int = SCHEMA


def append(path: Path, entry: Entry) -> None:
    """Add ``entry`` as the last line of ``path``; creates the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(asdict(entry), sort_keys=True).encode() + b"\n"
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
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
    return [_entry(path, n, text) for n, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)]


def _entry(path: Path, number: int, text: str) -> Entry:
    try:
        data: dict[str, Any] = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']} is not {SCHEMA}")
        return Entry(**{**data, "points": tuple(Point(**p) for p in data["points"])})
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: line {number} is not a history entry: {error}", "remove or mend that line") from None

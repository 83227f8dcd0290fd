"""What stands beside a cell's rows: the resolved cell, its outcome, and what only the run could show.

Schema history
  1  first version
  2  a digest of header and rows stands beside the header, and is checked on every read. A file without one cannot be
     told from an altered file, so schema 1 is not read any more: its cells are measured again.
  3  a cell says whether its clients streamed, which is part of its id, and rows say when chunks came.
"""

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from harness.schema.cell import Cell
from sglang_specbench.config import from_dict
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import json_value

SCHEMA = 3
REMEDY = "move it away, or read it with the version that wrote it"
BY_CALL = "@"  # in an allocation's name, before the one call of `specbench run --server` that measured it


class Outcome(StrEnum):
    """How a cell ended; all but `OK` are failures."""

    OK = "ok"
    TIMEOUT = "timeout"
    SERVER_DIED = "server_died"
    NOT_ATTESTED = "not_attested"
    INVALID = "invalid"
    OOM = "oom"
    ABORTED = "aborted"
    MISSING_SET = "missing_set"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, kw_only=True)
class Header:
    """Written once with the rows, in the Parquet schema metadata under ``specbench``."""

    cell: Cell
    outcome: str  # an `Outcome`
    reason: str = ""
    log_tail: str = ""
    wall_s: float | None = None  # measured closed loop, first send to last answer; None unless ok
    started_at: str = ""  # UTC, ISO 8601
    allocation: str = ""  # launches on one device in one go: speedups are taken within it
    launch: str = ""  # id of the server process
    order: int = 0  # place in the allocation
    prompts_digest: str = ""  # over the rendered ids of all prompts, in order
    environment: dict[str, Any] = field(default_factory=dict)  # see `comparable.ENVIRONMENT`
    attestation: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)  # the drafter's provenance.json; {} if it has none
    server_argv: tuple[str, ...] = ()
    server_args: dict[str, Any] = field(default_factory=dict)  # as the server resolved them (``/server_info``)
    server_env: dict[str, str] = field(default_factory=dict)
    warmup: dict[str, Any] = field(default_factory=dict)
    call: str = ""  # id of the `specbench run` that measured the cell
    reached: int = 0  # most requests in flight at once; 0 = not recorded
    counters: dict[str, int] = field(default_factory=dict)  # the server's own, of the measured part: see serve.counters
    machine: dict[str, Any] = field(default_factory=dict)  # what else ran meanwhile: see serve.machine_load
    cautions: tuple[str, ...] = ()  # doubts as text: too few blocks, cache hits, slow first request ...
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if self.outcome not in list(Outcome):
            raise ValueError(f"outcome {self.outcome!r} is not one of {', '.join(Outcome)}")
        if (self.outcome == Outcome.OK) != (self.wall_s is not None):
            raise ValueError(f"outcome {self.outcome!r} with wall_s {self.wall_s!r}: a time belongs to ok cells only")

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str, where: str = "header") -> "Header":
        """Inverse of `to_json`; `UserError` naming ``where`` for another schema, or a key that is not of its type."""
        data = json_value(text, where, REMEDY)
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != SCHEMA:
            older = isinstance(schema, int) and schema < SCHEMA
            why = "of an older version: measure the cell again" if older else "of another version"
            said = f"schema {schema!s:.20} is not {SCHEMA}, the one this version reads ({why})"
            raise UserError(f"{where}: {said}", REMEDY)
        return from_dict(cls, data, where)

"""What stands beside a cell's rows: the resolved cell, its outcome, and what only the run could show.

Schema history
  1  first version
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.schema.cell import Cell

SCHEMA = 1
OUTCOMES = (
    "ok",
    "timeout",
    "server_died",
    "not_attested",
    "invalid",
    "oom",
    "aborted",
    "missing_set",
    "infrastructure",
)
# Cells whose headers differ in one of these refuse to merge (store.merge names the key and both values).
MERGE_KEYS = ("device_name", "driver", "sglang", "torch", "python", "specbench", "threads", "attested")


@dataclass(frozen=True, kw_only=True)
class Header:
    """Written once with the rows, in the Parquet schema metadata under ``specbench``."""

    cell: Cell
    outcome: str  # one of OUTCOMES
    reason: str = ""
    log_tail: str = ""
    wall_s: float | None = None  # measured closed loop, first send to last answer; None unless ok
    started_at: str = ""  # UTC, ISO 8601
    allocation: str = ""  # launches on one device in one go: speedups are taken within it
    launch: str = ""  # id of the server process
    order: int = 0  # place in the allocation
    prompts_digest: str = ""  # over the rendered ids of all prompts, in order
    environment: dict[str, Any] = field(default_factory=dict)  # MERGE_KEYS and more
    attestation: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)  # the drafter's provenance.json; {} if it has none
    server_argv: tuple[str, ...] = ()
    server_env: dict[str, str] = field(default_factory=dict)
    warmup: dict[str, Any] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()  # doubts as text: too few blocks, cache hits, slow first request ...
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"outcome {self.outcome!r} is not one of {', '.join(OUTCOMES)}")
        if (self.outcome == "ok") != (self.wall_s is not None):
            raise ValueError(f"outcome {self.outcome!r} with wall_s {self.wall_s!r}: a time belongs to ok cells only")

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Header":
        """Inverse of `to_json`; an unknown schema raises ValueError."""
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']} is not {SCHEMA}, the one this version reads")
        cell = Cell.from_dict(data.pop("cell"))
        for key in ("server_argv", "cautions"):
            data[key] = tuple(data[key])
        return cls(cell=cell, **data)

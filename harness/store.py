"""One Parquet file per cell: rows as columns, the header as JSON in the schema metadata under ``specbench``.

A file appears by an atomic rename after its bytes are on disk, so a killed run or a full disk leaves no half cell.

`load` gives two pandas frames.

``cells``, one line per cell, indexed 0..n-1:
  cell (id), every field of `cell.Cell` (target, target_digest, arm, proposal, draft_digest, prompt_set,
  prompt_version, tier, temperature, seed, concurrency, repeat, replica, prompts, max_new_tokens, ignore_eos, top_p,
  top_k, device, dtype, render, graph_sizes, server, versions), then of `header.Header`: outcome, reason, log_tail,
  wall_s (NaN unless ok), started_at, allocation, launch, order, prompts_digest, attestation (dict), server_argv,
  server_env (dict), warmup (dict), cautions (tuple), schema, and one ``env_KEY`` per key of the environment.
``rows``, one line per request, in order of (cell, index, turn):
  cell (id, categorical), every field of `row.Row`: index, prompt_id, turn, category, prompt_hash, prompt_tokens,
  completion_tokens, verify_ct, correct_drafts (nullable Int64), histogram, cap_histogram (numpy arrays or None),
  finish_reason, retractions, cached_tokens, sent_s, first_token_s, done_s, output_hash, outcome, reason.
  ``output_ids`` and ``text`` only with ``outputs=True``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.header import Header
from harness.row import Row

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Frames:
    """A run in memory; columns as in the module's docstring."""

    cells: "pd.DataFrame"
    rows: "pd.DataFrame"


def write_cell(run_dir: Path, header: Header, rows: Sequence[Row]) -> Path:
    """Write ``RUN/cells/<id>.parquet`` atomically. A cell that is already there as ok is never replaced."""
    raise NotImplementedError


def read(path: Path) -> tuple[Header, list[Row]]:
    """One cell's header and rows; `UserError` naming the file if it is not one of ours."""
    raise NotImplementedError


def outcomes(run_dir: Path) -> dict[str, str]:
    """Cell id -> outcome of every cell file in the run."""
    raise NotImplementedError


def finished(run_dir: Path) -> set[str]:
    """Ids of the cells with outcome ok: a resumed run leaves them alone."""
    raise NotImplementedError


def load(run_dir: Path, outputs: bool = False) -> Frames:
    """Both frames of a run; `UserError` if its ok cells were measured under unlike conditions (MERGE_KEYS)."""
    raise NotImplementedError


def merge(sources: Iterable[Path], out: Path) -> None:
    """Copy the cells of several runs into the run folder ``out``; refuses unlike runs, naming key and both values."""
    raise NotImplementedError

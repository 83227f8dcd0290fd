"""The cells of a run as two pandas frames.

``cells``, one line per cell:
  cell (id), every field of `cell.Cell` (target, target_digest, arm, proposal, draft_digest, prompt_set,
  prompt_version, tier, temperature, seed, concurrency, repeat, replica, prompts, max_new_tokens, ignore_eos, top_p,
  top_k, device, dtype, render, capacity, context_length, stream, server, versions), then of `header.Header`: outcome,
  reason, log_tail, wall_s (NaN unless ok), started_at, allocation, launch, order, prompts_digest, attestation (dict),
  provenance (dict), server_argv, server_args (dict), server_env (dict), warmup (dict), call, reached, counters (dict),
  machine (dict), cautions (tuple), schema, and one ``env_KEY`` per environment key.
``rows``, one line per request, in order of (cell, index, turn):
  cell (id, categorical), every field of `row.Row`: index, prompt_id, turn, category, prompt_hash, prompt_tokens,
  completion_tokens, verify_ct, correct_drafts (nullable Int64), histogram, cap_histogram (numpy arrays or None),
  finish_reason, retractions, cached_tokens, sent_s, first_token_s, done_s, chunk_s, chunk_tokens (numpy arrays or
  None), output_hash, outcome, reason.
  ``output_ids`` and ``text`` only with ``outputs=True``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from harness.schema.header import Header
from harness.store.columns import COUNT, OUTPUTS, SCHEMA


@dataclass(frozen=True)
class Frames:
    """A run in memory; columns as in the module's docstring."""

    cells: pd.DataFrame
    rows: pd.DataFrame


def framed(cells: Sequence[tuple[Header, pa.Table]], outputs: bool = False) -> Frames:
    """Both frames of cells in memory; their rows as `cell_file.as_table` makes them. Checks nothing."""
    columns = [name for name in SCHEMA.names if outputs or name not in OUTPUTS]
    return Frames(pd.DataFrame([line(header) for header, _ in cells]), _rows(cells, columns))


def line(header: Header) -> dict[str, Any]:
    """One line of the ``cells`` frame."""
    own = {k: v for k, v in vars(header).items() if k not in ("cell", "environment")}
    environment = {f"env_{k}": v for k, v in header.environment.items()}
    wall = {"wall_s": float("nan") if header.wall_s is None else header.wall_s}
    return {"cell": header.cell.id, **vars(header.cell), **own, **wall, **environment}


def _rows(cells: Sequence[tuple[Header, pa.Table]], columns: Sequence[str]) -> pd.DataFrame:
    tables = [table.select(columns) for _, table in cells]
    joined = pa.concat_tables(tables or [pa.schema([SCHEMA.field(name) for name in columns]).empty_table()])
    names = pd.Categorical.from_codes(
        [i for i, table in enumerate(tables) for _ in range(table.num_rows)],
        categories=[header.cell.id for header, _ in cells],
    )
    frame = joined.to_pandas(types_mapper={COUNT: pd.Int64Dtype()}.get)
    frame.insert(0, "cell", names)
    return frame

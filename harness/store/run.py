"""A run's folder of cells: which are there, which may stand side by side, and all of them as two pandas frames.

`load` gives

``cells``, one line per cell:
  cell (id), every field of `cell.Cell` (target, target_digest, arm, proposal, draft_digest, prompt_set,
  prompt_version, tier, temperature, seed, concurrency, repeat, replica, prompts, max_new_tokens, ignore_eos, top_p,
  top_k, device, dtype, render, capacity, context_length, server, versions), then of `header.Header`: outcome, reason,
  log_tail, wall_s (NaN unless ok), started_at, allocation, launch, order, prompts_digest, attestation (dict),
  provenance (dict), server_argv, server_env (dict), warmup (dict), cautions (tuple), schema, and one ``env_KEY`` per
  environment key.
``rows``, one line per request, in order of (cell, index, turn):
  cell (id, categorical), every field of `row.Row`: index, prompt_id, turn, category, prompt_hash, prompt_tokens,
  completion_tokens, verify_ct, correct_drafts (nullable Int64), histogram, cap_histogram (numpy arrays or None),
  finish_reason, retractions, cached_tokens, sent_s, first_token_s, done_s, output_hash, outcome, reason.
  ``output_ids`` and ``text`` only with ``outputs=True``.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from harness.schema.header import MERGE_KEYS, Header
from harness.schema.request import Row
from harness.store import cell_file
from harness.store.cell_file import PARTIAL, SCHEMA, read, read_header
from sglang_specbench.errors import UserError

__all__ = [
    "Frames",
    "cell_files",
    "check_alike",
    "clean",
    "finished",
    "headers",
    "load",
    "merge",
    "outcomes",
    "read",
    "write_cell",
]


@dataclass(frozen=True)
class Frames:
    """A run in memory; columns as in the module's docstring."""

    cells: pd.DataFrame
    rows: pd.DataFrame


def write_cell(run_dir: Path, header: Header, rows: Sequence[Row]) -> Path:
    """Write ``RUN/cells/<id>.parquet`` atomically.

    A failed cell may be replaced by a later try; one that is there as ok raises FileExistsError.
    """
    path = cells_dir(run_dir) / f"{header.cell.id}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and read_header(path).outcome == "ok":
        raise FileExistsError(f"{path}: this cell was measured before")
    cell_file.write(path, header, rows)
    return path


def headers(run_dir: Path) -> dict[str, Header]:
    """Cell id -> header of every cell file in the run; reads no rows."""
    return {path.stem: read_header(path) for path in cell_files(run_dir)}


def outcomes(run_dir: Path) -> dict[str, str]:
    """Cell id -> outcome of every cell file in the run."""
    return {cell: header.outcome for cell, header in headers(run_dir).items()}


def finished(run_dir: Path) -> set[str]:
    """Ids of the cells with outcome ok: a resumed run leaves them alone and tries the others again."""
    return {cell for cell, outcome in outcomes(run_dir).items() if outcome == "ok"}


def clean(run_dir: Path) -> list[Path]:
    """Delete what killed writers left behind. Only for the one process that owns the run."""
    stray = sorted(cells_dir(run_dir).glob(f".*{PARTIAL}"))
    for path in stray:
        path.unlink()
    return stray


def load(run_dir: Path, outputs: bool = False) -> Frames:
    """Both frames of a run; `UserError` if its ok cells were measured under unlike conditions (`MERGE_KEYS`)."""
    columns = [name for name in SCHEMA.names if outputs or name not in cell_file.OUTPUTS]
    files = cell_files(run_dir)
    tables = [cell_file.read_table(path, columns) for path in files]
    found = {p: cell_file.parse_header(p, t.schema.metadata) for p, t in zip(files, tables, strict=True)}
    check_alike(found)
    return Frames(pd.DataFrame([_flat(header) for header in found.values()]), _rows(files, tables, columns))


def merge(sources: Sequence[Path], out: Path) -> None:
    """Copy the cells of several runs into the run folder ``out``.

    Nothing is written if two cells were measured under unlike conditions, or one ok cell twice: `UserError` names
    the key and both values. An ok cell takes the place of a failed one of the same id.
    """
    chosen: dict[str, Path] = {}
    for path in (path for run in sources for path in cell_files(run)):
        other = chosen.get(path.name)
        if other is None or read_header(other).outcome != "ok":
            chosen[path.name] = path
        elif read_header(path).outcome == "ok" and path.read_bytes() != other.read_bytes():
            raise UserError(f"cell {path.stem} was measured twice: {other} and {path}", "leave one run out")
    check_alike({path: read_header(path) for path in chosen.values()})
    cells_dir(out).mkdir(parents=True, exist_ok=True)
    for name, path in chosen.items():
        partial = cells_dir(out) / f".{name}{PARTIAL}"
        shutil.copyfile(path, partial)
        partial.replace(cells_dir(out) / name)


def check_alike(found: Mapping[Path, Header]) -> None:
    """`UserError` if two ok cells differ in one of `MERGE_KEYS`, naming the key and both values."""
    first: dict[str, tuple[Any, Path]] = {}
    for path, header in found.items():
        for key in MERGE_KEYS if header.outcome == "ok" else ():
            value = header.environment.get(key)
            wanted, owner = first.setdefault(key, (value, path))
            if value != wanted:
                raise UserError(
                    f"unlike cells: {key} is {wanted!r} in {owner} and {value!r} in {path}",
                    "keep runs of unlike machines or versions in folders of their own",
                )


def cells_dir(run_dir: Path) -> Path:
    """Where a run keeps its cells."""
    return run_dir / "cells"


def cell_files(run_dir: Path) -> list[Path]:
    """Every whole cell file, by name; `UserError` if ``run_dir`` is no folder."""
    if not run_dir.is_dir():
        raise UserError(f"{run_dir}: no such run folder", "check the path, or measure one: specbench run")
    return sorted(path for path in cells_dir(run_dir).glob("*.parquet") if not path.name.startswith("."))


def _flat(header: Header) -> dict[str, Any]:
    """One line of the ``cells`` frame."""
    own = {k: v for k, v in vars(header).items() if k not in ("cell", "environment")}
    environment = {f"env_{k}": v for k, v in header.environment.items()}
    wall = {"wall_s": float("nan") if header.wall_s is None else header.wall_s}
    return {"cell": header.cell.id, **vars(header.cell), **own, **wall, **environment}


def _rows(files: Sequence[Path], tables: Sequence[pa.Table], columns: Sequence[str]) -> pd.DataFrame:
    empty = pa.schema([SCHEMA.field(name) for name in columns]).empty_table()
    joined = pa.concat_tables([table.replace_schema_metadata(None) for table in tables] or [empty])
    names = pd.Categorical.from_codes(
        [i for i, table in enumerate(tables) for _ in range(table.num_rows)],
        categories=[path.stem for path in files],
    )
    frame = joined.to_pandas(types_mapper={cell_file.COUNT: pd.Int64Dtype()}.get)
    frame.insert(0, "cell", names)
    return frame

"""A run's folder of cells: which are there, which may stand side by side, and all of them as two pandas frames.

`load` gives

``cells``, one line per cell:
  cell (id), every field of `cell.Cell` (target, target_digest, arm, proposal, draft_digest, prompt_set,
  prompt_version, tier, temperature, seed, concurrency, repeat, replica, prompts, max_new_tokens, ignore_eos, top_p,
  top_k, device, dtype, render, capacity, context_length, server, versions), then of `header.Header`: outcome, reason,
  log_tail, wall_s (NaN unless ok), started_at, allocation, launch, order, prompts_digest, attestation (dict),
  provenance (dict), server_argv, server_args (dict), server_env (dict), warmup (dict), call, reached, counters (dict),
  machine (dict), cautions (tuple), schema, and one ``env_KEY`` per environment key.
``rows``, one line per request, in order of (cell, index, turn):
  cell (id, categorical), every field of `row.Row`: index, prompt_id, turn, category, prompt_hash, prompt_tokens,
  completion_tokens, verify_ct, correct_drafts (nullable Int64), histogram, cap_histogram (numpy arrays or None),
  finish_reason, retractions, cached_tokens, sent_s, first_token_s, done_s, output_hash, outcome, reason.
  ``output_ids`` and ``text`` only with ``outputs=True``.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from harness.schema import comparable
from harness.schema.cell import Cell
from harness.schema.header import Header
from harness.schema.request import Row
from harness.store import cell_file
from harness.store.cell_file import PARTIAL, read, read_header
from harness.store.columns import COUNT, OUTPUTS, SCHEMA
from sglang_specbench.errors import UserError

PANEL = ["target", "render", "prompt_set", "prompt_version", "tier"]  # cells that agree in these send the same prompts
__all__ = [
    "Frames",
    "cell_files",
    "check_alike",
    "check_prompts",
    "clean",
    "finished",
    "frames",
    "header_files",
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
    return {path.stem: header for path, header in header_files(run_dir).items()}


def header_files(run_dir: Path) -> dict[Path, Header]:
    """Cell file -> its header, of every cell in the run; reads no rows."""
    return {path: read_header(path) for path in cell_files(run_dir)}


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
    """Both frames of a run.

    `UserError` if its ok cells were measured under unlike conditions (`comparable`) or on unlike prompts.
    """
    found = {path: cell_file.read_table(path, outputs) for path in cell_files(run_dir)}
    check_alike({path: header for path, (header, _) in found.items()})
    made = frames(list(found.values()), outputs)
    check_prompts(run_dir, made)
    return made


def frames(cells: Sequence[tuple[Header, pa.Table]], outputs: bool = False) -> Frames:
    """Both frames of cells in memory; their rows as `cell_file.as_table` makes them. Checks nothing."""
    columns = [name for name in SCHEMA.names if outputs or name not in OUTPUTS]
    return Frames(pd.DataFrame([_flat(header) for header, _ in cells]), _rows(cells, columns))


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


def check_alike(found: Mapping[Path, Header], planned: Iterable[Cell] = ()) -> None:
    """`UserError` naming field and both values if two ok cells, or one and a planned cell, may not stand side by side.

    `harness.schema.comparable` says in which fields they must agree.
    """
    lines = [(str(path), comparable.facts(_flat(header))) for path, header in found.items() if header.outcome == "ok"]
    waiting = [("the plan", comparable.facts(vars(cell))) for cell in planned]
    for unlike in comparable.unlike([*lines, *waiting]):
        raise UserError(str(unlike), "keep runs of unlike machines, versions or settings in folders of their own")


def check_prompts(run_dir: Path, frames: Frames) -> None:
    """`UserError` if two ok cells sent unlike token ids for one first turn of one prompt set, naming cells and prompt.

    Later turns hold the arm's own answers and may differ.
    """
    if frames.cells.empty:
        return
    cells = frames.cells[frames.cells.outcome == "ok"]
    place = dict(zip(cells.cell, cells.groupby(PANEL, dropna=False).ngroup(), strict=True))
    first = frames.rows[(frames.rows.turn == 0) & frames.rows.cell.isin(place)]
    panels = first.cell.astype(object).map(place)
    kinds = first.groupby([panels, "prompt_id"], observed=True).prompt_hash.transform("nunique")
    if (kinds > 1).any():
        odd = first[kinds > 1].iloc[0]
        rivals = first[(first.prompt_id == odd.prompt_id) & (panels == place[odd.cell])].drop_duplicates("prompt_hash")
        one, other = rivals.cell.iloc[:2]
        raise UserError(
            f"{run_dir}: cells {one} and {other} sent unlike token ids for prompt {odd.prompt_id!r}",
            "they are not to be compared: measure both again with one tokenizer and chat template",
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

"""A run's folder of cells: which are there, which may stand side by side, and all of them as two frames."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.schema.cell import Cell
from harness.schema.facts import judged, unlike
from harness.schema.header import Header
from harness.schema.request import Row
from harness.store import cell_file
from harness.store.cell_file import read, read_header
from harness.store.frames import Frames, framed, line
from sglang_specbench.atomic_file import PARTIAL, whole
from sglang_specbench.errors import UserError

PANEL = ["target", "render", "prompt_set", "prompt_version", "tier"]  # cells that agree in these send the same prompts
__all__ = [
    "cell_files",
    "check_alike",
    "check_prompts",
    "clean",
    "finished",
    "header_files",
    "headers",
    "load",
    "merge",
    "outcomes",
    "read",
    "write_cell",
]


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
    """Both frames of a run (`harness.store.frames`).

    `UserError` if its ok cells were measured under unlike conditions (`comparable`) or on unlike prompts.
    """
    found = {path: cell_file.read_table(path, outputs) for path in cell_files(run_dir)}
    check_alike({path: header for path, (header, _) in found.items()})
    made = framed(list(found.values()), outputs)
    check_prompts(run_dir, made)
    return made


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
        with whole(cells_dir(out) / name) as partial:
            shutil.copyfile(path, partial)


def check_alike(found: Mapping[Path, Header], planned: Iterable[Cell] = ()) -> None:
    """`UserError` naming field and both values if two ok cells, or one and a planned cell, may not stand side by side.

    `harness.schema.comparable` says in which fields they must agree.
    """
    lines = [(str(path), judged(line(header))) for path, header in found.items() if header.outcome == "ok"]
    waiting = [("the plan", judged(vars(cell))) for cell in planned]
    for pair in unlike([*lines, *waiting]):
        raise UserError(str(pair), "keep runs of unlike machines, versions or settings in folders of their own")


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

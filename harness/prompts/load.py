"""Find and read prompt sets, in whatever form they come. No network: `fetch` is the only thing that downloads.

Forms of a row: ``{"id", "category", "turns"}`` (ours), ``{"turns"}`` (DeepSpec), ``{"messages"}`` (NeMo-Skills), the
SPEED-Bench columns, or the hub's raw fields, which get the manifest's wording. Files: JSONL, gzipped JSONL, Parquet.
"""

import gzip
import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.prompts.manifest import Manifest, folders, manifest
from harness.prompts.prompt_set import Prompt, PromptSet, examine
from harness.prompts.row import make_prompt
from harness.schema.cell import Cell
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import LINES_BYTES, json_lines, open_file, reading

REMEDY = "correct or delete the file"
BATCH = 256  # rows of a Parquet file that are unpacked at once
SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")


class MissingSet(Exception):
    """A set that cannot be used here: ``str()`` is the reason and the command that fixes it."""


def load(name: str, data_dirs: Sequence[Path] = ()) -> PromptSet:
    """Prompt set ``name`` from the first of ``data_dirs``, the user's cache folder and the packages that has it.

    Raises `MissingSet` if it is nowhere or its rows are refused, `UserError` for an unknown name or a broken file.
    """
    found = find(name, data_dirs)
    if found.report.refusals:
        reason = f"{found.report.source}: {'; '.join(found.report.refusals)}"
        raise MissingSet(f"prompt set {name!r} refused: {reason} (to fix: {found.manifest.how_to_add})")
    return found


def find(name: str, data_dirs: Sequence[Path] = ()) -> PromptSet:
    """As `load`, but a refused set is returned with its report: for `specbench data check`."""
    wanted = manifest(name, data_dirs)
    paths = _locate(wanted, data_dirs)
    if not paths:
        raise MissingSet(f"prompt set {name!r} is not on this machine (to add it: {wanted.how_to_add})")
    rows = (found for path in paths for found in read_rows(path))
    prompts = tuple(make_prompt(wanted, i, row, where) for i, (where, row) in enumerate(rows))
    report = examine(wanted, prompts, ", ".join(str(path) for path in paths))
    return PromptSet(manifest=wanted, prompts=prompts, report=report)


def for_cell(cell: Cell, data_dirs: Sequence[Path] = ()) -> tuple[Prompt, ...]:
    """The prompts of ``cell`` in the order in which they are sent.

    Raises `MissingSet` as `load`, and if the rows are not those that the cell was planned with.
    """
    found = load(cell.prompt_set, data_dirs)
    taken = found.take(cell.prompts, cell.tier)
    if found.version(taken) != cell.prompt_version:
        raise MissingSet(
            f"prompt set {cell.prompt_set!r} is {found.version(taken)}, planned with {cell.prompt_version}: plan again"
        )
    return taken


def cache_dir() -> Path:
    """Where `specbench data fetch` puts what it downloads."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sglang-specbench" / "prompts"


def _locate(wanted: Manifest, data_dirs: Sequence[Path]) -> list[Path]:
    """The files of the first folder that holds all parts of one alternative."""
    for folder in [*folders([*data_dirs, cache_dir()]), *_mini()]:
        for parts in wanted.files or ((wanted.name,),):
            paths = [_with_suffix(folder / part) for part in parts]
            if all(paths):
                return [path for path in paths if path]
    return []


def _mini() -> list[Path]:
    """The mini models' folder, whose prompts ship with them; found without importing torch."""
    spec = importlib.util.find_spec("drafters")
    return [Path(place) / "mini" for place in (spec and spec.submodule_search_locations) or ()]


def _with_suffix(stem: Path) -> Path | None:
    return next((path for suffix in SUFFIXES if (path := Path(f"{stem}{suffix}")).is_file()), None)


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, row) of a JSONL, gzipped JSONL or Parquet file; `UserError` naming them if it is broken."""
    if path.suffix == ".parquet":
        yield from _parquet_rows(path)
    elif path.suffix == ".gz":
        with open_file(path, LINES_BYTES, REMEDY) as packed, gzip.open(packed) as handle:
            yield from json_lines(path, REMEDY, handle)
    else:
        yield from json_lines(path, REMEDY)


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow.parquet as pq

    number, size = 0, 0
    with open_file(path, LINES_BYTES, REMEDY) as handle:
        with reading(path, REMEDY, "not a Parquet file"):
            batches = pq.ParquetFile(handle).iter_batches(BATCH, use_threads=False)
        while True:
            with reading(path, REMEDY, "not a Parquet file"):
                batch = next(batches, None)
                rows = [] if batch is None else batch.to_pylist()
            if batch is None:
                return
            size += batch.nbytes
            if size > LINES_BYTES:
                raise UserError(f"{path}: more than {LINES_BYTES:,} bytes of rows", REMEDY)
            for row in rows:
                number += 1
                yield f"{path}: line {number}", row

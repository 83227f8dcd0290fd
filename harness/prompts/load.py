"""Find and read prompt sets, in whatever form they come. No network: `fetch` is the only thing that downloads.

Forms of a row: ``{"id", "category", "turns"}`` (ours), ``{"turns"}`` (DeepSpec), ``{"messages"}`` (NeMo-Skills), the
SPEED-Bench columns, or the hub's raw fields, which get the manifest's wording. Files: JSONL, gzipped JSONL, Parquet.
"""

import gzip
import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from harness.prompts.manifest import Manifest, folders, manifest
from harness.prompts.prompt_set import Prompt, PromptSet, examine
from harness.schema.cell import Cell
from sglang_specbench.errors import UserError

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")


class MissingSet(Exception):
    """A set that cannot be used here: ``str()`` is the reason and the command that mends it."""


def load(name: str, data_dirs: Sequence[Path] = ()) -> PromptSet:
    """Prompt set ``name`` from the first of ``data_dirs``, the user's cache folder and the packages that has it.

    Raises `MissingSet` if it is nowhere or its rows are refused, `UserError` for an unknown name or a broken file.
    """
    found = find(name, data_dirs)
    if found.report.refusals:
        reason = f"{found.report.source}: {'; '.join(found.report.refusals)}"
        raise MissingSet(f"prompt set {name!r} refused: {reason} (to mend: {found.manifest.how_to_add})")
    return found


def find(name: str, data_dirs: Sequence[Path] = ()) -> PromptSet:
    """As `load`, but a refused set is returned with its report: for `specbench data check`."""
    wanted = manifest(name, data_dirs)
    paths = _locate(wanted, data_dirs)
    if not paths:
        raise MissingSet(f"prompt set {name!r} is not on this machine (to add it: {wanted.how_to_add})")
    rows = ((path, row) for path in paths for row in read_rows(path))
    prompts = tuple(make_prompt(wanted, i, row, path) for i, (path, row) in enumerate(rows))
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


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSONL, gzipped JSONL or Parquet file; `UserError` naming the file (and line) if it is broken."""
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as handle:
            return [_json(line, f"{path}:{n}") for n, line in enumerate(handle, 1) if line.strip()]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}", "mend or delete the file") from None


def _json(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not JSON: {error}", "mend or delete the file") from None
    if not isinstance(row, dict):
        raise UserError(f"{where}: expected an object, got {type(row).__name__}", "one JSON object a line")
    return row


def _parquet_rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a Parquet file: {error}", "mend or delete the file") from None


def make_prompt(wanted: Manifest, index: int, row: Mapping[str, Any], where: Path | str) -> Prompt:
    """One row in any form. A copy without ids gets the manifest's, or is numbered."""
    try:
        turns = wanted.turns(row)
    except (KeyError, TypeError) as error:
        hint = "expected turns, messages or the source's own fields"
        raise UserError(f"{where}: row {index}: no field {error} in it", hint) from None
    made = Template(wanted.wording.id).safe_substitute(row, index=index)
    identity = row.get("id") or (str(index) if "$" in made else made)
    category = row.get("category") or row.get(wanted.wording.category) or ""
    return Prompt(id=str(identity), turns=turns, category=str(category))

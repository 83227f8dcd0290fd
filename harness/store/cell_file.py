"""The file of one cell: rows as Parquet columns, the header as JSON in the schema metadata under ``specbench``.

A file appears by an atomic rename after its bytes are on disk, so a killed run or a full disk leaves no half cell.
What is read back is not trusted: the file's name must be the cell's id, header and rows must have the digest that was
written with them (`cell_digest`), and the rows of an ok cell must pass what measured rows pass (`row_checks`).
Knows one file. `store` knows the folder of a run, and which cells may stand side by side.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.schema.header import Header
from harness.schema.request import Row
from harness.store import cell_digest, columns, header_checks, row_checks
from harness.store.columns import OUTPUTS, REMEDY, SCHEMA
from sglang_specbench.arms import WINDOW
from sglang_specbench.atomic_file import whole
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import decoded

KEY = b"specbench"


def as_table(rows: Sequence[Row]) -> pa.Table:
    """``rows`` as they stand in a file."""
    return pa.table({name: [getattr(row, name) for row in rows] for name in SCHEMA.names}, schema=SCHEMA)


def write(path: Path, header: Header, rows: Sequence[Row]) -> None:
    """Write ``path`` atomically; an OSError (disk full, no permission) leaves the folder as it was."""
    table, text = as_table(rows), header.to_json().encode()
    table = table.replace_schema_metadata({KEY: text, cell_digest.KEY: cell_digest.of_cell(text, table)})
    with whole(path) as partial, partial.open("wb") as handle:
        # columns of a few hundred values: dictionaries and statistics cost more to read than they save
        pq.write_table(table, handle, compression="zstd", use_dictionary=False, write_statistics=False)
        handle.flush()
        os.fsync(handle.fileno())
    _sync_folder(path.parent)


def read_header(path: Path) -> Header:
    """The header alone: reads the file's footer, not its rows. Raises as `read`."""
    footer = columns.footer(path)
    return _header(path, footer.metadata, footer.num_rows)


def read(path: Path) -> tuple[Header, list[Row]]:
    """One cell's header and rows.

    `UserError` naming the file if it is not a whole cell of this schema, under its own name, as it was written.
    """
    header, table = read_table(path, outputs=True)
    return header, [_row(line) for line in table.to_pylist()]


def read_table(path: Path, outputs: bool = False) -> tuple[Header, pa.Table]:
    """The header, and the rows as an Arrow table, `OUTPUTS` only if asked for. Raises as `read`."""
    table = columns.read(path, [name for name in SCHEMA.names if outputs or name not in OUTPUTS])
    metadata = table.schema.metadata or {}
    header = _header(path, metadata, table.num_rows)
    faults = cell_digest.column_faults(metadata, table)
    if not faults and header.outcome == "ok":
        faults = row_checks.defects(table, header.cell, window_of(header), header.wall_s)
        faults += row_checks.counter_defects(table, header.counters)
        if header.reached not in (0, row_checks.reached(table)):
            faults.append(f"reached is {header.reached}, and the rows reach {row_checks.reached(table)}")
        if header.prompts_digest and header.prompts_digest != row_checks.prompts_digest(table):
            faults.append("prompts_digest is not that of its rows")
    if faults:
        raise _refused(path, faults)
    return header, table.replace_schema_metadata(None)


def window_of(header: Header) -> int:
    """Positions verified a block, by the server's attestation, else by its arguments."""
    said = header.attestation.get("window") or header.server_args.get("speculative_num_draft_tokens")
    return int(said or WINDOW)


def _header(path: Path, metadata: Mapping[bytes, bytes] | None, rows: int) -> Header:
    if not metadata or KEY not in metadata:
        raise UserError(f"{path}: no {KEY.decode()!r} header", "it was not written by specbench: move it away")
    where = f"{path}: header"
    header = Header.from_json(decoded(metadata[KEY], where), where)
    if faults := cell_digest.header_faults(metadata, metadata[KEY], rows):
        raise _refused(path, faults)
    if strange := list(header_checks.defects(header)):
        raise UserError(f"{where}: {strange[0]}", "measure the cell again with this version")
    if path.stem != header.cell.id:
        hint = "give it its name back, or delete the copy"
        raise UserError(f"{path}: it holds cell {header.cell.id} ({header.cell.label}), not the one of its name", hint)
    return header


def _refused(path: Path, faults: Sequence[str]) -> UserError:
    return UserError(f"{path}: {'; '.join(faults)}", REMEDY)


def _row(line: Mapping[str, Any]) -> Row:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in line.items()}
    return Row(**values)


def _sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

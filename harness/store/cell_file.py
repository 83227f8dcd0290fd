"""The file of one cell: rows as Parquet columns, the header as JSON in the schema metadata under ``specbench``.

A file appears by an atomic rename after its bytes are on disk, so a killed run or a full disk leaves no half cell.
Knows one file. `store` knows the folder of a run, and which cells may stand side by side.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.schema.header import Header
from harness.schema.request import Row
from sglang_specbench.errors import UserError

KEY = b"specbench"
PARTIAL = ".partial"  # suffix of a file that is being written
COUNT = pa.int64()  # nullable counts: read back as pandas Int64; every other integer is int32
INTS = pa.list_(pa.int32())
SCHEMA = pa.schema(
    [
        ("index", pa.int32()),
        ("prompt_id", pa.string()),
        ("turn", pa.int32()),
        ("category", pa.string()),
        ("prompt_hash", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("verify_ct", COUNT),
        ("correct_drafts", COUNT),
        ("histogram", INTS),
        ("cap_histogram", INTS),
        ("finish_reason", pa.string()),
        ("retractions", pa.int32()),
        ("cached_tokens", pa.int32()),
        ("sent_s", pa.float64()),
        ("first_token_s", pa.float64()),
        ("done_s", pa.float64()),
        ("output_hash", pa.string()),
        ("output_ids", INTS),
        ("text", pa.string()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
    ]
)
OUTPUTS = ("output_ids", "text")  # large, and only there on request


def write(path: Path, header: Header, rows: Sequence[Row]) -> None:
    """Write ``path`` atomically; an OSError (disk full, no permission) leaves the folder as it was."""
    table = pa.table({name: [getattr(row, name) for row in rows] for name in SCHEMA.names}, schema=SCHEMA)
    table = table.replace_schema_metadata({KEY: header.to_json()})
    partial = path.with_name(f".{path.stem}.{os.getpid()}{PARTIAL}")
    try:
        with partial.open("wb") as handle:
            # columns of a few hundred values: dictionaries and statistics cost more to read than they save
            pq.write_table(table, handle, compression="zstd", use_dictionary=False, write_statistics=False)
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def read_header(path: Path) -> Header:
    """The header alone: reads the file's footer, not its rows. Raises as `read`."""
    return parse_header(path, _guarded(pq.read_schema, path).metadata)


def read(path: Path) -> tuple[Header, list[Row]]:
    """One cell's header and rows; `UserError` naming the file if it is not a whole cell of this schema."""
    table = read_table(path)
    return parse_header(path, table.schema.metadata), [_row(line) for line in table.to_pylist()]


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows as an Arrow table, header in its metadata. Raises as `read`."""
    return _guarded(lambda p: pq.ParquetFile(p).read(columns=columns, use_threads=False), path)


def parse_header(path: Path, metadata: Mapping[bytes, bytes] | None) -> Header:
    """The header in a file's schema metadata. Raises as `read`."""
    if not metadata or KEY not in metadata:
        raise UserError(f"{path}: no {KEY.decode()!r} header", "it was not written by specbench: move it away")
    try:
        return Header.from_json(metadata[KEY].decode())
    except (ValueError, TypeError) as error:
        raise UserError(f"{path}: header: {error}", "read it with the version that wrote it") from None


def _row(line: Mapping[str, Any]) -> Row:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in line.items()}
    return Row(**values)


def _guarded(reader: Callable[[Path], Any], path: Path) -> Any:
    try:
        return reader(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: not a whole cell file: {reason}", "delete it and run the cell again") from None


def _sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

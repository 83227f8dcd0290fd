"""The columns of a cell file: their types, and how they are read from a file that anybody may have written.

Parquet packs well: a few kilobytes can stand for terabytes. So rows are read some at a time, and no further than
`MOST_BYTES`.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import open_file, reading

COUNT = pa.int64()  # nullable counts: read back as pandas Int64; every other integer is int32
INTS = pa.list_(pa.int32())
TIMES = pa.list_(pa.float64())
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
        ("chunk_s", TIMES),
        ("chunk_tokens", INTS),
        ("output_hash", pa.string()),
        ("output_ids", INTS),
        ("text", pa.string()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
    ]
)
OUTPUTS = ("output_ids", "text")  # large, and only there on request
NULLABLE = (
    *("verify_ct", "correct_drafts", "histogram", "cap_histogram", "first_token_s"),
    *("chunk_s", "chunk_tokens", *OUTPUTS),
)
REMEDY = "delete it and run the cell again"
FILE_BYTES = 4 << 30
MOST_BYTES = 4 << 30  # of the columns that are read: a thousand answers of a million ids
AT_ONCE = 1024  # rows


def footer(path: Path) -> pq.FileMetaData:
    """What stands at the end of a Parquet file. `UserError` if it is none."""
    with open_file(path, FILE_BYTES, REMEDY) as handle, reading(path, REMEDY, "not a whole cell file"):
        return pq.read_metadata(handle)


def read(path: Path, names: Sequence[str]) -> pa.Table:
    """The columns ``names``, with the file's metadata; `UserError` unless each is there once and of its type."""
    with open_file(path, FILE_BYTES, REMEDY) as handle, reading(path, REMEDY, "not a whole cell file"):
        file = pq.ParquetFile(handle)
        _require_types(path, file.schema_arrow, names)
        batches, held = list[pa.RecordBatch](), 0
        for batch in file.iter_batches(AT_ONCE, columns=list(names), use_threads=False):
            held += batch.nbytes
            if held > MOST_BYTES:
                raise UserError(f"{path}: its rows unpack to more than {MOST_BYTES:,} bytes", REMEDY)
            batches.append(batch)
        kinds = pa.schema([file.schema_arrow.field(name) for name in names], file.schema_arrow.metadata)
        table = pa.Table.from_batches([batch.select(list(names)) for batch in batches], kinds)
        table.validate(full=True)  # text that is not UTF-8, lists whose ends go back
    _require_values(path, table)
    return table


def _require_types(path: Path, found: pa.Schema, names: Sequence[str]) -> None:
    for name in names:
        if len(found.get_all_field_indices(name)) != 1:
            raise UserError(f"{path}: column {name!r} is missing or there twice", REMEDY)
        kind, wanted = found.field(name).type, SCHEMA.field(name).type
        alike = pa.types.is_list(kind) and kind.value_type == wanted.value_type if pa.types.is_list(wanted) else False
        if kind != wanted and not alike:  # Parquet gives a list's items another name
            raise UserError(f"{path}: column {name!r} is {kind}, not {wanted}", REMEDY)


def _require_values(path: Path, table: pa.Table) -> None:
    for name in table.column_names:
        column = table[name]
        held = column.combine_chunks().flatten() if pa.types.is_list(column.type) else column
        if held.null_count and (name not in NULLABLE or held is not column):
            raise UserError(f"{path}: column {name!r} lacks a value", REMEDY)

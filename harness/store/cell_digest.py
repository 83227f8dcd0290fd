"""The digest of one cell: of its header's text and of every column of its rows, so that no edit passes unseen.

Stands in the Parquet schema metadata under ``specbench.digest`` and is checked on every read. It covers contents, not
bytes: a file that another program rewrote without a change still holds.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import decoded, json_value

KEY = b"specbench.digest"


def of_cell(header: bytes, table: pa.Table) -> bytes:
    """The metadata value: JSON with the digest of the header's text, the number of rows, and a digest per column."""
    columns = {name: of_column(table[name]) for name in table.column_names}
    return json.dumps({"header": _sha(header), "rows": table.num_rows, "columns": columns}, sort_keys=True).encode()


def header_faults(metadata: Mapping[bytes, bytes], header: bytes, rows: int | None) -> list[str]:
    """What disagrees with the digest in ``metadata`` without reading rows; ``rows`` is what the file's footer says."""
    stored = _stored(metadata)
    if stored is None:
        return ["it has no digest"]
    faults = [] if stored.get("header") == _sha(header) else ["its header was changed after it was written"]
    if rows is not None and stored.get("rows") != rows:
        faults.append(f"it holds {rows} rows, and {stored.get('rows')} were written")
    return faults


def column_faults(metadata: Mapping[bytes, bytes], table: pa.Table) -> list[str]:
    """Columns of ``table`` (all, or some) that are not what was written."""
    written = (_stored(metadata) or {}).get("columns")
    written = written if isinstance(written, dict) else {}
    changed = [name for name in table.column_names if written.get(name) != of_column(table[name])]
    return [f"its rows were changed after they were written: {', '.join(changed)}"] if changed else []


def of_column(column: pa.ChunkedArray) -> str:
    """Sha256 (hex) over a column's type, which places are null, and the values."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # no rows: nothing to combine
        array = pa.array([], type=column.type)
    kind = "list" if pa.types.is_list(array.type) else array.type  # Parquet gives a list's items another name
    total = hashlib.sha256(f"{kind} {len(array)} ".encode())
    _add(total, array)
    return total.hexdigest()


def _add(total: "hashlib._Hash", array: pa.Array) -> None:
    total.update(array.is_valid().to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_list(array.type):
        total.update(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).tobytes())
        _add(total, array.flatten())
    elif pa.types.is_string(array.type):
        ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
        total.update(np.diff(ends).tobytes())
        if len(array) and (data := array.buffers()[2]):
            total.update(memoryview(data)[ends[0] : ends[-1]])
    else:
        values = array.fill_null(0).to_numpy(zero_copy_only=False)
        total.update(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes())


def _stored(metadata: Mapping[bytes, bytes]) -> Mapping[str, Any] | None:
    try:
        found = json_value(decoded(metadata[KEY], ""), "")
    except (KeyError, UserError):
        return None
    return found if isinstance(found, dict) else None


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

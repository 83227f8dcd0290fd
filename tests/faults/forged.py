"""One file of a run, forged: header or columns that no version wrote, with the digest and the name that belong to them.

So nothing but the checks of types and values stands between such a file and its readers.
"""

import contextlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from harness.schema.header import Header
from harness.store import cell_digest, cell_file
from sglang_specbench.errors import UserError
from tests.faults.changes import changed, torn

INTS = [-1, 0, 1, 7, 2**31 - 1, -(2**31)]
VALUES = {
    pa.int32(): INTS,
    pa.int64(): [*INTS, 2**63 - 1, -(2**63)],
    pa.float64(): [float("nan"), float("inf"), -1.0, 0.0, 1e308, 5e-324],
    pa.string(): ["", "\0", "[/red]", "</script>", "../..", "ok", "x" * 10_000],
    pa.list_(pa.float64()): [[], [float("nan")], [2.0, 1.0], [0.1], [None]],
    pa.list_(pa.int32()): [[], [-1], [2**31 - 1] * 3, [0] * 5000, [None]],
}
TYPES = [pa.int8(), pa.uint64(), pa.float32(), pa.string(), pa.binary(), pa.bool_(), pa.null(), pa.date32()]


@st.composite
def columns(draw, table):
    """``table`` with one to three columns changed in a place, of another type, absent, there twice or renamed."""
    for _ in range(draw(st.integers(1, 3))):
        if not table.num_columns:
            break
        at = draw(st.integers(0, table.num_columns - 1))
        name, kind = table.column_names[at], table.schema.field(at).type
        how = draw(st.sampled_from(["value", "value", "value", "null", "type", "drop", "double", "rename", "rows"]))
        if how in ("value", "null"):
            held = table.column(at).to_pylist()
            place = draw(st.integers(0, max(0, len(held) - 1)))
            if held and kind in VALUES:
                held[place] = None if how == "null" else draw(st.sampled_from(VALUES[kind]))
                table = table.set_column(at, name, pa.array(held, kind))
        elif how == "type":
            other = draw(st.sampled_from(TYPES))
            table = table.set_column(at, name, pa.nulls(table.num_rows, other))
        elif how == "drop":
            table = table.remove_column(at)
        elif how == "double":
            table = table.append_column(name, table.column(at))
        elif how == "rename":
            names = [*table.column_names]
            names[at] = draw(st.text(max_size=3))
            table = table.rename_columns(names)
        else:
            table = table.slice(draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    return table


@st.composite
def cells(draw, path):
    """(name, bytes) that stand in for the cell file ``path``."""
    how = draw(st.sampled_from(["header", "header", "columns", "columns", "both", "bytes"]))
    if how == "bytes":
        return path.name, draw(torn(path.read_bytes()))
    table = pq.read_table(path)
    text = table.schema.metadata[cell_file.KEY]
    if how != "columns":
        text = json.dumps(draw(changed(json.loads(text)))).encode()
    if how != "header":
        table = draw(columns(table))
    return packed(path.stem, text, table)


def packed(stem, text, table):
    """Name and bytes of the file with this header and these rows; ``stem`` where the header has no cell."""
    digest = b"{}"
    if len(set(table.column_names)) == table.num_columns:
        try:
            digest = cell_digest.of_cell(text, table)
        except (ValueError, TypeError, IndexError):  # a type that the digest does not know
            digest = json.dumps({"header": cell_digest._sha(text), "rows": table.num_rows}).encode()
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({cell_file.KEY: text, cell_digest.KEY: digest}), sink)
    with contextlib.suppress(UserError):
        stem = Header.from_json(text.decode()).cell.id
    return f"{stem}.parquet", sink.getvalue().to_pybytes()

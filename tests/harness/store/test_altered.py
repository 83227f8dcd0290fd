"""A run whose files were altered after it was measured: every reader refuses it by the file's name."""

import json
import shutil
from dataclasses import asdict, fields, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.load_results import load_results
from harness.schema.cell import Cell
from harness.schema.header import Header
from harness.store import cell_digest, cell_file
from harness.store import run as store
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic

CELLS = [synthetic.cell("T", arm, "gsm8k", prompts=6) for arm in ("ar", "dflash")]
NAMES = list(cell_file.SCHEMA.names)
OTHER = {str: "other", int: 7, float: 0.5, bool: True, tuple: ("x",), dict: {"x": 1}, type(None): 1.0}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return synthetic.write(tmp_path_factory.mktemp("whole"), synthetic.run(CELLS))


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def path_of(run, arm="dflash"):
    return run / "cells" / f"{next(c.id for c in CELLS if c.arm == arm)}.parquet"


def readers(run, path):
    """Every way to a number of this run."""
    yield lambda: store.load(run)
    yield lambda: store.load(run, outputs=True)
    yield lambda: load_results(str(run))
    yield lambda: load_results(str(run), str(run))
    yield lambda: store.read(path)


def refused(run, path, reason=".", header_too=False):
    heads = [lambda: store.read_header(path), lambda: store.headers(run), lambda: store.outcomes(run)]
    for reader in (*readers(run, path), *(heads if header_too else [])):
        with pytest.raises(UserError, match=reason) as caught:
            reader()
        assert path.name in str(caught.value)


def rewritten(path, change):
    """The file as another program would write it after ``change`` of its table; metadata kept."""
    table = pq.read_table(path)
    metadata = table.schema.metadata
    pq.write_table(change(table).replace_schema_metadata(metadata), path)


def edited(table, name, place=0):
    column = table[name].to_pylist()
    old, kind = column[place], table.schema.field(name).type
    fresh = {pa.string(): "x", pa.float64(): 0.5}.get(kind, [1] if pa.types.is_list(kind) else 1)
    new = fresh if old is None else [*old, 1] if isinstance(old, list) else old + fresh
    column[place] = new
    return table.set_column(table.column_names.index(name), name, pa.array(column, type=table.schema.field(name).type))


def test_an_untouched_run_reads_and_so_does_one_that_was_only_rewritten(run):
    before = store.load(run).rows
    rewritten(path_of(run), lambda table: table)
    assert store.load(run).rows.astype(str).equals(before.astype(str))


@pytest.mark.parametrize("arm", ["ar", "dflash"])
@pytest.mark.parametrize("name", NAMES)
def test_an_edit_of_any_column_is_refused(run, arm, name):
    path = path_of(run, arm)
    rewritten(path, lambda table: edited(table, name))
    if name in cell_file.OUTPUTS:  # not read unless asked for
        with pytest.raises(UserError, match=f"were changed after they were written: {name}"):
            store.load(run, outputs=True)
    else:
        refused(run, path, f"were changed after they were written: .*{name}")


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.slice(0, t.num_rows // 2),
        lambda t: pa.concat_tables([t, t]),
        lambda t: t.slice(0, 0),
        lambda t: t.take(list(range(t.num_rows))[::-1]),
    ],
    ids=["half deleted", "doubled", "all deleted", "shuffled"],
)
@pytest.mark.parametrize("arm", ["ar", "dflash"])
def test_lacking_and_doubled_rows_are_refused(run, arm, change):
    rewritten(path_of(run, arm), change)
    refused(run, path_of(run, arm))


def with_header(path, header):
    """The file with another header, everything else kept."""
    table = pq.read_table(path)
    pq.write_table(
        table.replace_schema_metadata({**table.schema.metadata, cell_file.KEY: header.to_json().encode()}), path
    )


@pytest.mark.parametrize("name", [f.name for f in fields(Header) if f.name not in ("cell", "outcome", "schema")])
def test_an_edit_of_any_header_field_is_refused(run, name):
    path = path_of(run)
    old = store.read_header(path)
    value = getattr(old, name)
    new = value + 1 if isinstance(value, (int, float)) else OTHER[type(value)]
    with_header(path, replace(old, **{name: new}))
    refused(run, path, "header was changed|header: ", header_too=True)


@pytest.mark.parametrize("name", [f.name for f in fields(Cell)])
def test_an_edit_of_any_cell_field_is_refused(run, name):
    path = path_of(run)
    old = store.read_header(path)
    value = getattr(old.cell, name)
    new = value + 1 if type(value) in (int, float) else not value if isinstance(value, bool) else OTHER[type(value)]
    with_header(path, replace(old, cell=replace(old.cell, **{name: new})))
    refused(run, path, "header was changed|header: ", header_too=True)


def test_a_failed_cell_that_calls_itself_ok_is_refused(run):
    path = path_of(run)
    header, _ = store.read(path)
    cell_file.write(path, replace(header, outcome="timeout", wall_s=None), [])
    with_header(path, header)
    refused(run, path, "header was changed|header: ", header_too=True)


def test_a_renamed_cell_file_is_refused(run):
    path = path_of(run)
    new = path.rename(path.with_name("0123456789abcdef.parquet"))
    refused(run, new, "it holds cell .* not the one of its name", header_too=True)


def test_a_doubled_cell_file_is_refused(run):
    copy = path_of(run).with_name("copy.parquet")
    shutil.copy(path_of(run), copy)
    refused(run, copy, "it holds cell", header_too=True)


def test_a_file_without_a_digest_is_refused(run):
    path = path_of(run)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({cell_file.KEY: table.schema.metadata[cell_file.KEY]}), path)
    refused(run, path, "it has no digest", header_too=True)


def signed(path, header, rows):
    """As one who recomputes the digest would write it."""
    path.unlink()
    cell_file.write(path, header, rows)


@pytest.mark.parametrize("arm", ["ar", "dflash"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: {"completion_tokens": 3 * r.completion_tokens + 4096}, "and the limit is"),
        (lambda r: {"completion_tokens": -r.completion_tokens}, "completion_tokens is -"),
        (lambda r: {"done_s": r.sent_s - 1}, "sent at"),
        (lambda r: {"verify_ct": 1, "correct_drafts": 3, "histogram": (0, 1)}, "spec counts|sum"),
    ],
)
def test_impossible_rows_are_refused_even_with_a_right_digest(run, arm, change, reason):
    header, rows = store.read(path_of(run, arm))
    signed(path_of(run, arm), header, [replace(r, **change(r)) for r in rows])
    refused(run, path_of(run, arm), reason)


def test_a_wall_that_is_not_the_rows_own_is_refused_even_with_a_right_digest(run):
    header, rows = store.read(path_of(run, "ar"))
    signed(path_of(run, "ar"), replace(header, wall_s=2 * header.wall_s), rows)
    refused(run, path_of(run, "ar"), "wall_s is .* and the rows span")


def test_prompts_that_are_not_those_of_the_header_are_refused(run):
    header, rows = store.read(path_of(run))
    signed(path_of(run), replace(header, prompts_digest="0" * 64), rows)
    refused(run, path_of(run), "prompts_digest is")


def test_arms_that_were_sent_unlike_prompts_are_refused_naming_cells_and_prompt(run):
    header, rows = store.read(path_of(run))
    signed(path_of(run), header, [replace(rows[0], prompt_hash="another"), *rows[1:]])
    for reader in (lambda: store.load(run), lambda: load_results(str(run))):
        with pytest.raises(UserError, match="sent unlike token ids for prompt 'gsm8k-0'") as caught:
            reader()
        assert all(cell.id in str(caught.value) for cell in CELLS)


def test_later_turns_may_differ_between_arms(tmp_path):
    cells = [synthetic.cell("T", arm, "mt-bench", prompts=3) for arm in ("ar", "dflash")]
    made = [
        (header, [replace(r, prompt_hash=f"{header.cell.arm}-{r.index}" if r.turn else str(r.index)) for r in rows])
        for header, rows in synthetic.run(cells)
    ]
    assert len(store.load(synthetic.write(tmp_path, made)).cells) == 2


def test_the_digest_covers_every_column_and_the_header(run):
    stored = json.loads(pq.read_schema(path_of(run)).metadata[cell_digest.KEY])
    assert sorted(stored["columns"]) == sorted(NAMES)
    assert set(asdict(store.read_header(path_of(run)))) == {f.name for f in fields(Header)}

"""A run's folder: what counts as done, what may stand side by side, and the two frames."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from harness.prompts.chat_template import ids_hash
from harness.store import frames as columns
from harness.store import run as store
from sglang_specbench.atomic_file import PARTIAL
from sglang_specbench.errors import UserError
from tests.harness.made import cell, header, row

IDS = tuple(range(8))


def test_finished_cells_are_the_ok_ones(tmp_path):
    store.write_cell(tmp_path, header(cell(seed=1)), [row()])
    store.write_cell(tmp_path, header(cell(seed=2), outcome="oom", wall_s=None), [])
    assert store.finished(tmp_path) == {cell(seed=1).id}
    assert store.outcomes(tmp_path) == {cell(seed=1).id: "ok", cell(seed=2).id: "oom"}


def test_a_failed_cell_is_replaced_and_an_ok_one_never(tmp_path):
    store.write_cell(tmp_path, header(outcome="timeout", wall_s=None), [])
    path = store.write_cell(tmp_path, header(), [row()])
    with pytest.raises(FileExistsError):
        store.write_cell(tmp_path, header(wall_s=9.0), [])
    assert store.read(path)[0].wall_s == 0.4


def test_stray_partial_files_are_ignored_and_cleaned(tmp_path):
    store.write_cell(tmp_path, header(), [row()])
    stray = tmp_path / "cells" / f".0123.77{PARTIAL}"
    stray.write_bytes(b"half")
    assert len(store.load(tmp_path).cells) == 1
    assert store.clean(tmp_path) == [stray]
    assert not stray.exists()


def test_frames_have_the_columns_of_the_docstring(tmp_path):
    store.write_cell(tmp_path, header(cell(seed=1, prompts=2), wall_s=0.9), [row(0), row(1)])
    ar = row(verify_ct=None, correct_drafts=None, histogram=None, first_token_s=None)
    of_ar = cell(seed=2, arm="ar", proposal="none", prompts=2)
    later = replace(ar, index=1, prompt_id="p1", sent_s=0.5, done_s=0.9)
    store.write_cell(tmp_path, header(of_ar, wall_s=0.9), [ar, later])
    store.write_cell(tmp_path, header(cell(seed=3), outcome="timeout", wall_s=None, reason="slow"), [])
    frames = store.load(tmp_path)
    for name in (*frames.cells.columns, *frames.rows.columns):
        assert name.startswith("env_") or name in columns.__doc__, name
    cells, rows = frames.cells.set_index("cell"), frames.rows
    assert np.isnan(cells.wall_s[cell(seed=3).id])
    assert cells.env_driver[cell(seed=1, prompts=2).id] == "580"
    assert isinstance(rows.cell.dtype, pd.CategoricalDtype)
    assert rows.verify_ct.dtype == "Int64"
    first = rows[rows.cell == of_ar.id].iloc[0]
    assert first.verify_ct is pd.NA
    assert first.histogram is None
    drafted = rows[rows.cell == cell(seed=1, prompts=2).id]
    assert drafted.prompt_id.tolist() == ["p0", "p1"]
    assert drafted.histogram.iloc[0].tolist() == [1, 0, 1, 1]


def test_outputs_only_on_request(tmp_path):
    store.write_cell(tmp_path, header(), [row(text="hello", output_ids=IDS, output_hash=ids_hash(IDS))])
    assert "text" not in store.load(tmp_path).rows
    assert store.load(tmp_path, outputs=True).rows.text.tolist() == ["hello"]


def test_an_empty_run_gives_empty_frames_with_columns(tmp_path):
    rows = store.load(tmp_path).rows
    assert len(rows) == 0
    assert {"cell", "prompt_id", "histogram"} <= set(rows.columns)


def test_a_run_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="no such run folder"):
        store.load(tmp_path / "nope")


def test_a_run_of_unlike_cells_is_refused_naming_key_and_values(tmp_path):
    store.write_cell(tmp_path, header(cell(seed=1)), [row()])
    store.write_cell(tmp_path, header(cell(seed=2), environment={"driver": "575", "sglang": "0.5.23"}), [row()])
    with pytest.raises(UserError, match=r"driver is '5\d\d' in .* and '5\d\d' in "):
        store.load(tmp_path)


def test_a_failed_cell_may_lack_its_environment(tmp_path):
    store.write_cell(tmp_path, header(cell(seed=1)), [row()])
    store.write_cell(tmp_path, header(cell(seed=2), outcome="server_died", wall_s=None, environment={}), [])
    assert len(store.load(tmp_path).cells) == 2


def test_merge_joins_parts_and_lets_ok_replace_failed(tmp_path):
    a, b, out = (tmp_path / name for name in ("a", "b", "out"))
    store.write_cell(a, header(cell(seed=1)), [row()])
    store.write_cell(a, header(cell(seed=2), outcome="oom", wall_s=None), [])
    store.write_cell(b, header(cell(seed=2)), [row()])
    store.merge([a, b], out)
    assert store.outcomes(out) == {cell(seed=1).id: "ok", cell(seed=2).id: "ok"}
    store.merge([a, b, b], out)  # the same file twice is the same cell


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"environment": {"driver": "575", "sglang": "0.5.23"}}, "driver is '580' in .* and '575' in"),
        ({"started_at": "2026-01-02T00:00:00+00:00"}, "was measured twice"),
    ],
)
def test_merge_refuses_unlike_runs_and_writes_nothing(tmp_path, change, message):
    a, b = tmp_path / "a", tmp_path / "b"
    store.write_cell(a, header(), [row()])
    other = cell(seed=3) if "environment" in change else cell()
    store.write_cell(b, header(other, **change), [row()])
    with pytest.raises(UserError, match=message):
        store.merge([a, b], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_tenth_of_the_paper_loads_and_is_checked_in_a_tenth_of_twenty_seconds(tmp_path):
    """120 cells of 333 rows; the paper's matrix has 1,200 of them (processor time: the machine may be busy)."""
    rows = [row(i, verify_ct=16, correct_drafts=120, completion_tokens=137, histogram=(1,) * 16) for i in range(333)]
    for seed in range(120):
        store.write_cell(
            tmp_path, header(cell(seed=seed, prompts=333, max_new_tokens=137), wall_s=0.5 * 332 + 0.4), rows
        )
    store.load(tmp_path)
    start = time.process_time()
    assert len(store.load(tmp_path).rows) == 120 * 333
    assert time.process_time() - start < 2.0

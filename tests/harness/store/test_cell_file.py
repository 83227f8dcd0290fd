"""One cell's file: what goes in comes out, and nothing half-written is ever seen."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.store import cell_file
from sglang_specbench.atomic_file import PARTIAL
from sglang_specbench.errors import UserError
from tests.harness.made import header, row

counts = st.integers(0, 2**31 - 1)
rows = st.builds(
    row,
    index=counts,
    verify_ct=st.none() | counts,
    correct_drafts=st.none() | counts,
    histogram=st.none() | st.lists(counts, max_size=16).map(tuple),
    output_ids=st.none() | st.lists(counts, max_size=5).map(tuple),
    text=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    first_token_s=st.none() | st.floats(0, 1e6),
    reason=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)


@given(st.lists(rows, max_size=4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_and_header_come_back_as_they_were(tmp_path, made):
    """Rows of a cell that failed: any at all. Those of an ok one must be possible (test_row_checks)."""
    failed = header(outcome="invalid", wall_s=None)
    path = tmp_path / f"{failed.cell.id}.parquet"
    cell_file.write(path, failed, made)
    assert cell_file.read(path) == (failed, made)
    assert cell_file.read_header(path) == failed


CHILD = """
import resource, signal, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from tests.harness.made import header, row
from harness.store import cell_file
{fault}
cell_file.write(Path({path!r}), header(), [row(i) for i in range(5000)])
"""
FULL = """signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # as a full disk: writes fail after 4 KiB"""
KILLED = """import os
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # dies with the bytes written, before the rename"""


def child(fault: str, path: Path) -> subprocess.CompletedProcess[str]:
    code = CHILD.format(here=str(Path(__file__).parents[3]), fault=fault, path=str(path))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "c.parquet"
    cell_file.write(path, header(outcome="timeout", wall_s=None), [])
    before = path.read_bytes()
    done = child(FULL, path)
    assert "File too large" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["c.parquet"]
    assert path.read_bytes() == before


def test_a_killed_writer_leaves_no_cell(tmp_path):
    done = child(KILLED, tmp_path / "c.parquet")
    assert done.returncode == -9
    assert [p.suffix for p in tmp_path.iterdir()] == [PARTIAL]


@pytest.mark.parametrize("keep", [0, 4, 100, 0.5, 0.99])
def test_a_truncated_file_is_named(tmp_path, keep):
    path = tmp_path / "c.parquet"
    cell_file.write(path, header(), [row()])
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    with pytest.raises(UserError, match=r"c\.parquet: not a whole cell file"):
        cell_file.read(path)
    with pytest.raises(UserError, match=r"c\.parquet"):
        cell_file.read_header(path)


def test_a_parquet_file_of_somebody_else_is_refused(tmp_path):
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(UserError, match="no 'specbench' header"):
        cell_file.read_header(path)

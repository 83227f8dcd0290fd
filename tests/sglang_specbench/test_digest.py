"""The digest of weights, and its memo: other bytes are another digest, whatever the file's dates say."""

import os
import shutil
import time

import pytest

from sglang_specbench import digest
from sglang_specbench.errors import UserError

TICK_S = 0.05  # coarser than the clock of file times: two writes within one tick have one date


@pytest.fixture
def memos(monkeypatch, tmp_path):
    """Every file is remembered, at once; the folder of the memos."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digest, "REMEMBERED_BYTES", 0)
    monkeypatch.setattr(digest, "SETTLED_NS", -1)
    return tmp_path / "cache" / "sglang-specbench" / "digests"


@pytest.fixture
def shard(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"a" * 1000)
    time.sleep(TICK_S)
    return path


def counted(monkeypatch):
    """How often a file was really read."""
    reads, real = [], digest._sha256
    monkeypatch.setattr(digest, "_sha256", lambda path: reads.append(path) or real(path))
    return reads


def test_an_untouched_file_is_read_once(memos, shard, monkeypatch):
    reads = counted(monkeypatch)
    assert digest.file_digest(shard) == digest.file_digest(shard)
    assert len(reads) == 1
    assert len(list(memos.iterdir())) == 1


def in_place(path):
    path.write_bytes(b"b" * 1000)


def by_rename(path):
    other = path.with_name("other")
    other.write_bytes(b"b" * 1000)
    other.replace(path)


def by_copy(path):
    other = path.with_name("other")
    other.write_bytes(b"b" * 1000)
    shutil.copystat(path, other)
    shutil.copy2(other, path)


@pytest.mark.parametrize("change", [in_place, by_rename, by_copy])
def test_other_weights_of_one_size_and_date_are_another_digest(memos, shard, change):
    before, stat = digest.file_digest(shard), shard.stat()
    change(shard)
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (shard.stat().st_size, shard.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    assert digest.file_digest(shard) != before


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"sha256": 7}', '{"sha256": "short"}', '{"path": "x"}', "\0"])
def test_a_damaged_memo_is_made_again(memos, shard, text):
    right = digest.file_digest(shard)
    (memo,) = memos.iterdir()
    memo.write_text(text)
    assert digest.file_digest(shard) == right
    assert right in memo.read_text()


def test_a_file_that_has_just_changed_is_not_remembered(memos, shard, monkeypatch):
    monkeypatch.setattr(digest, "SETTLED_NS", 2_000_000_000)
    digest.file_digest(shard)
    assert not memos.exists()


def test_a_file_that_changes_while_it_is_read_is_not_remembered(memos, shard, monkeypatch):
    real = digest._sha256
    monkeypatch.setattr(digest, "_sha256", lambda path: (real(path), path.write_bytes(b"c" * 1000))[0])
    digest.file_digest(shard)
    assert not memos.exists()


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(memos, shard):
    memos.parent.parent.mkdir()
    memos.parent.write_text("a file where the folder should be")
    assert len(digest.file_digest(shard)) == 64


def test_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no config\.json"):
        digest.weights_digest(tmp_path)


def test_a_name_of_any_bytes_has_a_digest(memos, shard):
    odd = shard.with_name("more\udcff.safetensors")
    odd.write_bytes(b"b")
    (shard.parent / "config.json").write_text("{}")
    with_it = digest.weights_digest(shard.parent)
    odd.unlink()
    assert digest.weights_digest(shard.parent) != with_it

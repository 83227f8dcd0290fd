"""A file is there whole or not at all, and nothing is left beside it."""

from pathlib import Path

import pytest

from sglang_specbench.atomic_file import PARTIAL, make_folder, whole, write_text
from sglang_specbench.errors import UserError


def test_a_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for text in ("old", "é\n"):
        write_text(path, text)
        assert path.read_bytes() == text.encode()
    assert list(tmp_path.iterdir()) == [path]


def half(path: Path, error: type[BaseException]) -> None:
    with whole(path) as partial:
        partial.write_text("half")
        assert partial.parent == path.parent
        assert (partial.name[0], partial.suffix, path.read_text()) == (".", PARTIAL, "old")
        raise error


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_writer_that_is_stopped_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(error):
        half(path, error)
    assert (list(tmp_path.iterdir()), path.read_text()) == ([path], "old")


def test_a_folder_that_cannot_be_made_names_where_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"run: --out .*file/below: "):
        make_folder(tmp_path / "file" / "below", "run: --out")

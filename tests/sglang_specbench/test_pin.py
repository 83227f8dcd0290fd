"""Another SGLang, made from the installed one with one thing changed: what `specbench pin` says of it."""

import shutil
from pathlib import Path

import pytest
import typer

from sglang_specbench import pin, sglang_source
from sglang_specbench.errors import UserError

pytestmark = [pytest.mark.sglang, pytest.mark.slow]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A folder like an unpacked wheel; each test leaves it as it was."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("srt", "kernels"):
        ignore = shutil.ignore_patterns("*.so", "*.pyc", "*.cu", "*.cuh", "*.json")
        shutil.copytree(sglang_source.installed() / name, folder / "sglang" / name, ignore=ignore)
    return folder


def test_the_installed_release_has_all_that_we_rely_on():
    """What is not found in it could not be missed in another either."""
    root = sglang_source.installed()
    known = sglang_source.words(root)
    assert [name for name, target in pin._patched() if not sglang_source.signature(root, target)] == []
    assert [text for text in pin._lines() if not sglang_source.printable(root, text)] == []
    flags = [flag for flag in pin._flags() if not {flag, flag[2:].replace("-", "_")} & known]
    assert flags == []
    assert [name for name in (*pin._variables(), *pin._attributes()) if name not in known] == []


def test_signatures_are_those_that_the_patches_demand():
    """Read from the source here, from the live function where the patch is applied."""
    from sglang_specbench.serving.patches.table import CPU, GATES, OF_ARM

    for patch in (*GATES, *CPU, *OF_ARM.values()):
        if patch.target.startswith("sglang.") and patch.signature.startswith("("):
            assert sglang_source.signature(sglang_source.installed(), patch.target) == patch.signature, patch.name


CASES = {
    "a parameter more": (
        "srt/managers/scheduler.py", "def maybe_init_draft_worker(self)", "def maybe_init_draft_worker(self, late=1)",
        ("patched", "bootstrap_workers", "(self) -> (self, late=1)"),
    ),
    "a function renamed": (
        "srt/models/lilicorr.py", "lilicorr_sample_path", "lilicorr_walk", ("patched", "lilicorr_exact", "gone"),
    ),
    "a comma for a semicolon": (
        "srt/speculative/dflash_worker_v2.py", "ran the eager head on a decode step", "ran eager",
        ("log line", "ran the eager head on a decode step", "gone"),
    ),
    "an attribute renamed": (
        "srt/speculative/dflash_worker_v2.py", "_warned_sampling_fallback", "_told_sampling_fallback",
        ("attribute", "_warned_sampling_fallback", "gone"),
    ),
}  # fmt: skip


def test_an_equal_release_changes_nothing_and_each_change_is_named(copied, capsys):
    with pytest.raises(typer.Exit) as left:
        pin.pin(copied)
    assert left.value.exit_code == 0
    assert "nothing changes" in capsys.readouterr().out
    for file, old, new, _ in CASES.values():
        path = copied / "sglang" / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    sglang_source.messages.cache_clear()
    sglang_source.words.cache_clear()
    with pytest.raises(typer.Exit) as left:
        pin.pin(copied)
    assert left.value.exit_code == 1
    lines = capsys.readouterr().out.splitlines()
    for kind, name, said in (wanted for *_, wanted in CASES.values()):
        assert any(line.startswith(f"{kind}: {name}") and line.endswith(said) for line in lines), (name, lines)
    assert lines[-1].startswith("4 changes of what specbench relies on")


def test_a_folder_without_sglang_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="no sglang/srt in it"):
        pin.pin(tmp_path)

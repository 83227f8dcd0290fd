"""Drafters of unlike width in one run: named, bounded by their own width, and told apart on read."""

from dataclasses import replace

import pytest

from harness.load_results import estimated, frames_of
from harness.stats.estimate import Missing
from harness.stats.setting import AVERAGE
from harness.store import cell_file
from harness.store import run as store
from harness.tables.build import title_of
from harness.tables.registry import table
from sglang_specbench.arms import WINDOW
from tests import synthetic_run
from tests.harness.made import cell as made_cell
from tests.harness.made import header, row

HISTOGRAM = (1, 0, 1, 1)  # `made.row`'s: three blocks, the longest of which accepts 3 drafts


def results(folder, **windows):
    """A run of one request an arm, by arms of these windows."""
    cells = [made_cell(arm=arm, draft_digest=arm) for arm in windows]
    made = [(header(c, attestation={"arm": c.arm, "window": windows[c.arm]}), [row()]) for c in cells]
    synthetic_run.write(folder, made)
    return estimated(frames_of([folder]), [folder], "r")


def test_unlike_widths_are_named_and_bound_the_survival(tmp_path):
    found = results(tmp_path, dflash=16, dspark=8)
    assert title_of(found, "dflash").startswith("DFlash, 15 drafted")
    assert title_of(found, "dspark").startswith("DSpark, 7 drafted")
    assert any("DFlash 15 drafted, DSpark 7 drafted" in note for note in found.notes)
    survival = table(found, "survival")
    assert len(survival.columns) == 15
    dspark = next(r for r in survival.rows if r.label.startswith("DSpark"))
    blocks, reached = sum(HISTOGRAM), [sum(HISTOGRAM[i:]) for i in range(1, 4)]
    assert [c.content.value for c in dspark.cells[:7]] == pytest.approx([n / blocks for n in reached] + [0] * 4)
    assert all(isinstance(c.content, Missing) for c in dspark.cells[7:])


def test_one_width_is_not_worth_a_word(tmp_path):
    found = results(tmp_path, dflash=8, dspark=8)
    assert title_of(found, "dflash").startswith("DFlash")
    assert "drafted" not in title_of(found, "dflash")
    assert not any("drafted" in note for note in found.notes)
    assert len(table(found, "survival").columns) == 7


def test_a_wider_drafter_than_the_papers_has_its_places(tmp_path):
    """A block of 24 that accepts 20 drafts: nothing is cut at sixteen."""
    histogram = (0,) * 20 + (1,)
    wide = row(completion_tokens=22, verify_ct=1, correct_drafts=20, histogram=histogram)
    made = header(made_cell(), attestation={"window": 24})
    synthetic_run.write(tmp_path, [(made, [wide])])
    found = estimated(frames_of([tmp_path]), [tmp_path], "r")
    (setting,) = [s for s in found.settings() if not s.category and s.benchmark != AVERAGE]
    assert found.get(setting, "tau").value == 21
    assert [found.get(setting, f"a{i}").value for i in (16, 20, 21)] == [1, 1, 0]


def test_a_block_longer_than_the_attested_width_is_refused_on_read(tmp_path):
    made = header(made_cell(), attestation={"window": 3})
    store.write_cell(tmp_path, made, [row()])
    with pytest.raises(Exception, match="a block of 3 drafts, and the window is 3"):
        store.read(next(iter(store.cell_files(tmp_path))))


def test_an_unattested_server_is_believed_by_its_arguments():
    bare = header(made_cell())
    assert cell_file.window_of(bare) == WINDOW
    assert cell_file.window_of(replace(bare, server_args={"speculative_num_draft_tokens": 8})) == 8

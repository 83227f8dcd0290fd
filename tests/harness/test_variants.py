"""Several checkpoints of one arm side by side, from the sweep file to the table."""

import pytest

from harness.audit import subjects
from harness.load_results import load_results
from harness.sweep import plan, sweep
from harness.tables import registry
from harness.tables.variants import original
from plots import style
from sglang_specbench.arms import ARMS, get_arm
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic
from tests.harness.made import sweep_text

ARMS_HERE = ("ar", "lilicorr", "lilicorr@k4")


def test_a_variant_is_its_arm_with_another_checkpoint():
    base, variant = ARMS["lilicorr"], get_arm("lilicorr@k4")
    assert (variant.checkpoint, variant.kind, variant.title) == ("lilicorr@k4", "lilicorr", "LiLiCorr [k4]")
    assert (variant.flags, variant.env, variant.head) == (base.flags, base.env, base.head)
    assert get_arm("lilicorr-exact@k4").checkpoint == "lilicorr@k4"  # other rule, same weights
    assert "lilicorr@k4" not in list(ARMS)


@pytest.mark.parametrize("name", ["ar@x", "lilicorr@", "lilicorr@K4", "lilicorr@../x", "lilicorr@a@b"])
def test_other_names_are_refused_with_the_form(name):
    with pytest.raises(UserError, match="write ARM@WORD"):
        get_arm(name)


def test_a_sweep_measures_variants_in_the_allocation_of_their_arm(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        """name = "v"
[target.mini]
path = "mini:target"
[target.mini.drafters]
lilicorr = "mini:lilicorr"
"lilicorr@conv" = "mini:lilicorr"
[[panel]]
arms = ["lilicorr@conv", "ar", "lilicorr"]
[panel.sets.mini]
prompts = 2
max_new_tokens = 8
"""
    )
    _, made = plan.make(str(path), [], "cpu")
    arms = {cell.arm: cell for cell in made.cells}
    assert set(arms) == {"ar", "lilicorr", "lilicorr@conv"}
    assert arms["lilicorr"].id != arms["lilicorr@conv"].id
    assert len(made.allocations) == 1
    launch = next(p for p in made.launches if p.arm == "lilicorr@conv").server(1)
    assert launch.config.arm == "lilicorr@conv"
    assert "--speculative-draft-model-path" in launch.argv
    loaded = sweep.load(str(path))
    assert list(subjects.arms(loaded, "mini", [], "cpu")) == [
        "ar", "lilicorr", "lilicorr-argmax", "lilicorr-exact",
        "lilicorr@conv", "lilicorr-argmax@conv", "lilicorr-exact@conv",
    ]  # fmt: skip


def test_a_variant_without_its_checkpoint_is_refused_with_the_line_to_add(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(sweep_text(tmp_path, arms=["ar", "dflash@x"]))
    with pytest.raises(UserError, match='add "dflash@x" = "FOLDER or hub id"'):
        sweep.load(str(path))


def test_the_table_gives_paired_changes_against_the_arm_itself(tmp_path):
    cells = [synthetic.cell("toy", arm, "gsm8k", prompts=30) for arm in ARMS_HERE]
    results = load_results(str(synthetic.write(tmp_path / "run", synthetic.run(cells))))
    assert results.arms() == list(ARMS_HERE)
    table = registry.table(results, "variants")
    row, average = table.rows
    assert (row.label, average.label) == ("LiLiCorr [k4] †: GSM8K", "LiLiCorr [k4] †: Average")
    assert average.cells[0].content.value == row.cells[0].content.value  # of one set
    tau, change, speed, blocks = (cell.content for cell in row.cells)
    own = {arm: results.get(row.cells[0].setting.of(arm), "tau").value for arm in ARMS_HERE[1:]}
    assert tau.value == own["lilicorr@k4"]
    assert change.value == pytest.approx(100 * (own["lilicorr@k4"] / own["lilicorr"] - 1))
    assert change.low < change.value < change.high
    rates = {a: results.get(row.cells[0].setting.of(a), "block_ms").value for a in ARMS_HERE[1:]}
    assert blocks.value == pytest.approx(100 * (rates["lilicorr"] / rates["lilicorr@k4"] - 1))
    speeds = {a: results.get(row.cells[0].setting.of(a), "throughput").value for a in ARMS_HERE[1:]}
    assert speed.value == pytest.approx(100 * (speeds["lilicorr@k4"] / speeds["lilicorr"] - 1))
    main = registry.table(results, "5")
    assert not any("k4" in column.group + column.name for column in main.columns)


def test_originals():
    assert [original(a) for a in ("ar", "lilicorr", "lilicorr-exact", "lilicorr@k4", "lilicorr-exact@k4")] == [
        "", "", "lilicorr", "lilicorr", "lilicorr-exact",
    ]  # fmt: skip


def test_a_variant_is_drawn_unlike_its_arm():
    assert style.line("lilicorr@k4")["color"] != style.line("lilicorr")["color"]

"""Two runs side by side: pairs, bands, and every reason not to judge."""

from dataclasses import replace

import pytest

from harness.gate.compare import as_table, compare
from harness.paper import published
from harness.stats.estimate import Missing
from harness.stats.estimates import measure
from harness.stats.setting import Setting
from harness.store import run as store
from harness.tables.render import markdown
from tests import synthetic_run as synthetic

ARMS = ("ar", "dflash", "lilicorr")
AT = Setting(target="Qwen3-8B", arm="lilicorr", benchmark="gsm8k", temperature=0.0)


def results(tmp_path, name, slower=1.0, environment=None, **changes):
    made = []
    cells = [synthetic.cell("Qwen3-8B", arm, "gsm8k", **{"prompts": 40, **changes}) for arm in ARMS]
    for header, rows in synthetic.run(cells):
        factor = slower if header.cell.arm == "lilicorr" else 1.0
        slowed = [
            replace(r, sent_s=r.sent_s * factor, first_token_s=r.first_token_s * factor, done_s=r.done_s * factor)
            for r in rows
        ]
        env = environment or header.environment
        made.append((replace(header, wall_s=header.wall_s * factor, environment=env), slowed))
    frames = store.load(synthetic.write(tmp_path / name, made))
    return measure(frames.cells, frames.rows, name)


def verdicts(differences):
    return {(d.setting.arm, d.quantity): d.verdict for d in differences}


def test_a_run_against_itself_is_a_tie_with_no_width(tmp_path):
    run = results(tmp_path, "a")
    for d in compare(run, run):
        assert d.verdict == "equal"
        assert (d.change.value, d.change.low, d.change.high) == (0, 0, 0)


def test_three_per_cent_slower_is_worse_in_speed_and_a_tie_in_tau(tmp_path):
    """Paired: the interval of the change has no width, though each throughput's is over 5 % wide."""
    found = compare(results(tmp_path, "slow", slower=1.03), results(tmp_path, "base"))
    assert verdicts(found)[("lilicorr", "throughput")] == "worse"
    assert verdicts(found)[("lilicorr", "speedup")] == "worse"
    assert verdicts(found)[("lilicorr", "tau")] == "equal"
    assert verdicts(found)[("dflash", "throughput")] == "equal"
    change = next(d for d in found if (d.setting.arm, d.quantity) == ("lilicorr", "throughput")).change
    assert change.value == pytest.approx(100 * (1 / 1.03 - 1))
    assert change.high - change.low < 1e-9


def test_other_prompts_are_not_comparable(tmp_path):
    found = compare(results(tmp_path, "a", prompt_version="2"), results(tmp_path, "b"))
    assert {d.verdict for d in found} == {"not comparable"}
    assert found[0].reason == "prompt_version: 2 against 1"


def test_another_device_leaves_acceptance_to_compare(tmp_path):
    found = compare(results(tmp_path, "a", environment={"device_name": "H200"}), results(tmp_path, "b"))
    assert verdicts(found)[("lilicorr", "tau")] == "equal"
    reason = next(d.reason for d in found if d.quantity == "throughput")
    assert reason == "device_name: H200 against synthetic"


def test_other_weights_are_what_one_compares(tmp_path):
    found = compare(results(tmp_path, "a", draft_digest="new"), results(tmp_path, "b"))
    assert "not comparable" not in verdicts(found).values()


def test_a_hole_is_named_with_its_run(tmp_path):
    a, b = results(tmp_path, "a"), results(tmp_path, "b")
    del b.values[AT, "tau"]
    b.holes[AT] = "seed 42: oom"
    d = next(d for d in compare(a, b) if (d.setting, d.quantity) == (AT, "tau"))
    assert (d.verdict, d.reason) == ("not comparable", "b: seed 42: oom")
    assert isinstance(d.change, Missing)


def test_against_the_paper_only_acceptance_is_judged_and_says_it_is_unpaired(tmp_path):
    found = compare(results(tmp_path, "run"), published.results())
    at = {d.quantity: d for d in found if d.setting == AT}
    assert at["tau"].verdict == "worse"  # synthetic 5.7 against the printed 7.56
    assert "unpaired" in at["tau"].reason
    assert at["throughput"].verdict == "not comparable"
    assert at["throughput"].reason == "device: synthetic against the paper's NVIDIA H100"
    averages = [d for d in found if d.setting.benchmark == "average"]
    assert averages
    assert all(d.reason.startswith("averages over gsm8k and over gsm8k, math500") for d in averages)


def test_the_table_says_what_stands_in_one_run_only(tmp_path):
    run = results(tmp_path, "run")
    text = markdown(as_table(run, published.results(), compare(run, published.results()), "tau"))
    assert "only in paper" in text
    assert "Qwen3-4B/gsm8k" in text


@pytest.mark.parametrize("doubted", [0, 1])
def test_an_unaudited_arm_of_either_run_carries_the_dagger(tmp_path, doubted):
    runs = [results(tmp_path, name) for name in "ab"]
    runs[doubted].unaudited = {"lilicorr": "unaudited"}
    table = as_table(*runs, compare(*runs), "tau")
    assert {row.label for row in table.rows} == {"LiLiCorr \N{DAGGER}", "DFlash"}
    assert f"{runs[doubted].name}: \N{DAGGER} unaudited" in markdown(table)

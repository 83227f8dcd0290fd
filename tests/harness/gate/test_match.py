"""What a gate's effects are made of, against a derivative taken numerically and sums taken by hand."""

from dataclasses import replace

import numpy as np
import pytest

from harness.gate.match import shared, speeds, tau_changes, text_of
from harness.load_results import load_results
from harness.stats.setting import Setting
from tests import synthetic_run as synthetic

# one seed twice, one once: a mean over seeds of means over repeats is no mean over cells
SEEDS = ((42, 0), (42, 1), (43, 0))
AT = Setting(target="toy", arm="dflash", benchmark="gsm8k", temperature=1.0)


def made(folder, versions, prompts=12, **changes):
    changes |= {"prompts": prompts, "versions": (versions,)}
    cells = [
        synthetic.cell("toy", arm, "gsm8k", 1.0, seed=seed, repeat=repeat, **changes)
        for seed, repeat in SEEDS for arm in ("ar", "dflash")
    ]  # fmt: skip
    return load_results(str(synthetic.write(folder, list(synthetic.run(cells)), planned=cells)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return [made(tmp_path_factory.mktemp(name), name) for name in ("old", "new")]


def log_tau(results, weights):
    """Of dflash with every prompt counted ``weights`` times: a mean over seeds of means over repeats."""
    cells = results.cells[results.cells.arm == "dflash"]
    taus = []
    for counts in map(results.prompt_counts.get, cells.cell):
        order = np.argsort(counts.prompts)
        correct, blocks = counts.correct[order], counts.blocks[order]
        taus.append(1 + (weights @ correct) / (weights @ blocks))
    return np.log(cells.assign(tau=taus).groupby("seed").tau.mean().mean())


def test_a_prompts_share_is_the_derivative_of_log_tau_in_its_weight(runs):
    changes = tau_changes(*runs, shared(*runs))
    assert list(changes) == [AT]  # AR has no blocks
    step, ones = 1e-6, np.ones(12)
    slopes = [
        [12 * (log_tau(r, ones + step * e) - log_tau(r, ones - step * e)) / (2 * step) for e in np.eye(12)]
        for r in runs
    ]
    assert changes[AT].influence == pytest.approx(np.subtract(*slopes[::-1]), abs=1e-6)
    assert changes[AT].value == pytest.approx(log_tau(runs[1], ones) - log_tau(runs[0], ones))
    assert changes[AT].prompts == tuple(("gsm8k", p) for p in sorted({p for _, p in changes[AT].prompts}))


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_tau_that_one_run_lacks_has_no_change(runs, lacking):
    holed = list(runs)
    holed[lacking] = replace(runs[lacking], values={k: v for k, v in runs[lacking].values.items() if k[1] != "tau"})
    assert tau_changes(*holed, [AT]) == {}


def test_a_cell_without_blocks_has_no_share_and_one_with_a_single_block_has(runs):
    counts = runs[0].prompt_counts
    (cell, *_) = runs[0].cells.cell[runs[0].cells.arm == "dflash"]

    def influence(blocks):
        own = np.zeros(12)
        own[0] = blocks
        odd = replace(runs[0], prompt_counts={**counts, cell: replace(counts[cell], blocks=own, correct=2 * own)})
        return tau_changes(odd, runs[1], [AT])[AT].influence

    assert np.isfinite([influence(0), influence(1)]).all()
    assert influence(0) != pytest.approx(influence(1))


def test_one_prompt_has_no_spread(tmp_path):
    assert [len(tau_changes(r, r, [AT])) for r in (made(tmp_path / str(n), "one", prompts=n) for n in (1, 2))] == [0, 1]


def test_speeds_are_means_over_the_cells_of_an_allocation(runs):
    cells = runs[0].per_cell
    for arm, quantity in (("ar", "throughput"), ("dflash", "speedup")):
        own = cells[cells.arm == arm].groupby("allocation")[quantity].mean()
        found = speeds(runs[0], [replace(AT, arm=arm)])
        assert {allocation: value for (allocation, _), value in found.items()} == pytest.approx(own.to_dict())
    assert {setting for _, setting in speeds(runs[0], [AT])} == {AT}
    assert speeds(replace(runs[0], per_cell=None), [AT]) == {}


def test_a_speed_that_is_not_known_is_left_out(runs):
    hidden = runs[0].per_cell.copy()
    hidden.loc[hidden.index[hidden.arm == "dflash"][:1], "speedup"] = np.nan
    whole, fewer = speeds(runs[0], [AT]), speeds(replace(runs[0], per_cell=hidden), [AT])
    assert all(np.isfinite(value) for value in fewer.values())
    assert fewer != whole


def test_settings_are_named_with_tier_and_proposal():
    assert text_of(AT) == "gsm8k T=1 argmax c=1"
    assert text_of(replace(AT, tier="high", temperature=0.0, concurrency=4)) == "gsm8k/high T=0 argmax c=4"
    assert text_of(replace(AT, arm="ar")) == "gsm8k T=1 none c=1"


def test_only_settings_of_both_runs_are_shared(runs, tmp_path):
    other = made(tmp_path, "other", concurrency=2)
    assert shared(*runs) == [replace(AT, arm="ar"), AT]
    assert shared(runs[0], other) == []

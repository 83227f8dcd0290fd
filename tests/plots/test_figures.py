"""Figures: every one draws from the data it needs, says no without it, and is the same bytes twice."""

import numpy as np
import pytest

from harness.paper import published
from harness.speedup_model.question import Question
from harness.stats.estimates import measure
from harness.stats.results import Results
from harness.store import run as store
from plots import batch_speedup, style, survival, theory
from plots.figures import FIGURES
from tests import synthetic_run as synthetic


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    cells = [
        synthetic.cell("Qwen3-8B", arm, name, t, prompts=18, repeat=r, seed=seed, concurrency=c)
        for arm in ("ar", "dflash", "lilicorr", "lilicorr-argmax")
        for name in ("gsm8k", "speed-qualitative")
        for t, seeds in ((0.0, (42,)), (1.0, (42, 43)))
        for seed in seeds for r in (0, 1) for c in (1, 4)
        if not (arm == "lilicorr-argmax" and t == 0)
    ]  # fmt: skip
    frames = store.load(synthetic.write(folder, synthetic.run(cells)))
    return measure(frames.cells, frames.rows, "synthetic")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_from_a_measured_run(name, measured, tmp_path):
    with style.look():
        figure = FIGURES[name][0](measured)
        assert figure is not None
        paths = style.save(figure, tmp_path, name)
    assert [p.suffix for p in paths] == [".svg", ".pdf", ".png"]
    assert all(p.stat().st_size > 2000 for p in paths)


@pytest.mark.parametrize("name", FIGURES)
def test_no_figure_draws_from_nothing(name):
    assert FIGURES[name][0](Results(name="empty")) is None


def test_the_model_draws_its_best_lengths_and_the_end_of_free_verification():
    """The worked numbers, read off the drawing: acceptance 0.8 at cost 0.05 is best with 8 drafted, 3.09."""
    with style.look():
        left, right = theory.draw().axes
    dots = {(round(x), round(y, 2)) for line in left.lines if line.get_marker() == "o" for x, y in line.get_xydata()}
    assert (8, 3.09) in dots
    solid = next(line for line in left.lines if line.get_label() == "acceptance 0.8")
    assert solid.get_ydata()[4] == pytest.approx(2.80, abs=0.005)
    ends = [line.get_xdata()[0] for line in right.lines if len(line.get_xdata()) == 2]
    assert ends == [104]  # at 512 cached tokens; at 8,192 verification never stops being free


def test_the_model_draws_speedup_against_batch_until_memory_ends():
    """Qwen3-8B at 8,192 tokens: its line ends at the last batch that fits, and starts at the command's own number."""
    with style.look():
        left, right = batch_speedup.draw().axes
    found = Question(target="qwen3-8b", drafted=15, context=8192, batches=(1, 32, 64)).roofline_tables()
    lines = next(table for name, table in found.items() if name.startswith("speedup at"))
    line = next(line for line in left.lines if line.get_label() == "8,192 cached")
    assert line.get_ydata()[0] == pytest.approx(lines[0]["speedup"])
    assert line.get_xdata()[-1] <= found["memory"][0]["sequences that fit"] < batch_speedup.BATCHES[-1]
    mixture = next(line for line in right.lines if line.get_label() == "512 cached").get_ydata()
    assert mixture[0] < max(mixture)  # dear at batch 1, cheaper when most experts are read anyway


def test_the_same_data_give_the_same_bytes(tmp_path):
    written = []
    for folder in ("a", "b"):
        with style.look():
            figure = FIGURES["head_cost"][0](published.results())
            written.append([p.read_bytes() for p in style.save(figure, tmp_path / folder, "head_cost")])
    assert written[0] == written[1]


def test_head_cost_bars_are_the_published_numbers():
    with style.look():
        figure = FIGURES["head_cost"][0](published.results())
    texts = [t.get_text().strip() for axis in figure.axes for t in axis.texts]
    assert "0.299 ms (3.3 %)" in texts
    assert "0.765 ms (11.5 %)" in texts


def test_survival_lines_sum_to_tau(measured):
    """1 + sum of a line's points is the tau of the same setting."""
    with style.look():
        figure = survival.draw(measured)
    axis = figure.axes[0]
    line = next(item for item in axis.lines if item.get_label() == "LiLiCorr")
    frame = measured.frame("tau")
    own = frame[(frame.arm == "lilicorr") & (frame.benchmark == "gsm8k") & (frame.temperature == 0) & frame.seed.isna()]
    own = own[(own.concurrency == 1) & (own.category == "")]
    assert "GSM8K" in axis.get_title()
    assert 1 + np.sum(line.get_ydata()) == pytest.approx(own.value.iloc[0], rel=1e-9)


def test_arms_that_share_a_colour_differ_in_hatching():
    assert style.colour("lilicorr") == style.colour("lilicorr-argmax")
    assert style.hatch("lilicorr") != style.hatch("lilicorr-argmax")


def test_a_figure_says_what_its_run_lacks_and_which_arms_are_unaudited(tmp_path):
    from typer.testing import CliRunner

    from sglang_specbench.cli import app

    cells = [synthetic.cell("toy", arm, "gsm8k", prompts=12) for arm in ("ar", "dflash", "lilicorr", "domino")]
    made = [one for one in synthetic.run(cells) if one[0].cell.arm != "domino"]
    synthetic.write(tmp_path / "run", made, planned=cells)
    done = CliRunner().invoke(app, ["plot", str(tmp_path / "run"), "--only", "bars", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0
    drawn = (tmp_path / "out" / "bars.svg").read_text()
    assert "LiLiCorr \N{DAGGER}" in drawn
    assert "1 of 4 planned cells have no number: toy/domino 1 missing (gsm8k)" in drawn
    assert "\N{DAGGER} unaudited" in drawn

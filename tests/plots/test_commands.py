"""`specbench plot` and `specbench dashboard` as a user meets them."""

import re
import shutil

import pytest

from harness.gate import history, record
from harness.load_results import load_results
from plots.commands import dashboard, plot
from plots.figures import FIGURES
from plots.style import SPARE, colour, screen_colour, title
from sglang_specbench.arms import ARMS
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic


def test_a_figure_without_data_says_what_would_fill_it(tmp_path, capsys):
    plot(run="paper", out=tmp_path, only="noise", arms="")
    assert capsys.readouterr().out == "noise: paper has no data for it; to fill it, set repeats = 2 or more\n"
    assert all(needs.split(" ")[0] in ("add", "list", "measure", "set") for _, needs in FIGURES.values())


def test_only_chosen_arms_are_drawn(tmp_path):
    for folder, arms in (("all", ""), ("two", "lilicorr,dspark")):
        plot(run="paper", out=tmp_path / folder, only="bars", arms=arms)
    drawn = {f: (tmp_path / f / "bars.svg").read_text() for f in ("all", "two")}
    assert "DFlash2" in drawn["all"]
    assert "DFlash2" not in drawn["two"]
    assert "LiLiCorr" in drawn["two"]


def test_every_arm_has_its_own_colour_and_a_variant_that_of_its_family():
    assert colour("lilicorr-argmax") == colour("lilicorr")
    assert colour("dspark-scheduled") == colour("dspark")
    spare = [colour(arm) for arm in ("eagle3", "ngram", "standalone")]
    assert len(set(spare)) == 3
    assert all(found in [look.colour for look in SPARE] for found in spare)
    assert colour("made-up") == colour("made-up")
    assert screen_colour("ar") != "#000000"
    assert all(title(arm) == ARMS[arm].title for arm in ARMS)


def test_a_dashboard_of_nothing_is_one_clear_line(tmp_path):
    with pytest.raises(UserError, match="no runs in the history"):
        dashboard(history=tmp_path / "none", run="", arms="", certificates=tmp_path, out=tmp_path / "site")


@pytest.fixture
def judged(tmp_path):
    """``judged(name, verdict)`` writes a run and its line of history; the folder and the history."""
    path = tmp_path / "h.jsonl"
    first = []

    def write(name, verdict, prompts):
        cells = [synthetic.cell("toy", arm, "gsm8k", prompts=prompts) for arm in ("ar", "dflash")]
        folder = synthetic.write(tmp_path / name, synthetic.run(cells))
        results = load_results(str(folder))
        history.append(path, record.entry(folder.name, results, verdict, first[0] if first else None))
        first.append(results)
        return folder

    return write, path


def shown(tmp_path, run, path):
    dashboard(history=path, run=str(run), arms="", certificates=tmp_path / "none", out=tmp_path / "site")
    pages = {name: (tmp_path / "site" / f"{name}.html").read_text() for name in ("index", "history")}
    return pages["index"], pages["history"]


def test_a_run_is_known_by_its_cells_and_shown_with_its_own_verdict(tmp_path, judged):
    """By whatever path it is named, and whichever run came last."""
    write, path = judged
    write("accepted", "ok", 12)
    older = write("older", "regression", 14)
    write("newest", "inconclusive", 16)
    shutil.move(older, tmp_path / "moved")
    index, page = shown(tmp_path, f"{tmp_path}/./moved", path)
    assert "Gate: regression, against accepted." in index
    assert "3 runs" in page
    assert "moved" not in page


def test_a_run_that_was_not_judged_is_one_more_line(tmp_path, judged):
    write, path = judged
    write("accepted", "ok", 12)
    cells = [synthetic.cell("toy", arm, "gsm8k", prompts=20) for arm in ("ar", "dflash")]
    index, page = shown(tmp_path, synthetic.write(tmp_path / "accepted2", synthetic.run(cells)), path)
    assert "Gate: not judged." in index
    assert "2 runs" in page


def test_what_changed_is_asked_of_the_accepted_run_first(tmp_path, judged):
    write, path = judged
    write("accepted", "ok", 12)
    write("between", "ok", 14)
    newest = write("newest", "ok", 16)
    _, page = shown(tmp_path, newest, path)
    assert re.search(r'<select id="older">.*<option value="0" selected>accepted', page, re.S)

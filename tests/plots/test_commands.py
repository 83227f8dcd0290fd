"""`specbench plot` and `specbench dashboard` as a user meets them."""

import pytest

from plots.commands import dashboard, plot
from plots.figures import FIGURES
from plots.style import SPARE, colour, screen_colour, title
from sglang_specbench.arms import ARMS
from sglang_specbench.errors import UserError


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

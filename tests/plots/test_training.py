"""Curves of a training folder: what was evaluated is drawn, what was not is said."""

import json

import pytest
from typer.testing import CliRunner

from plots import training
from sglang_specbench.errors import UserError


def write(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / training.METRICS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def row(step, arm, **values):
    return {"step": step, "arm": arm, "kind": "held_out", "loss": 1.5, "tau": 2.0, **values}


def test_arms_side_by_side_and_one_by_one_give_the_same_curves(tmp_path):
    rows = [row(s, arm, decoded_tau=2 + s / 100, decoded_blocks=90) for s in (10, 20) for arm in ("dflash", "dspark")]
    together = write(tmp_path / "together", [{"step": 20, "arm": "dflash", "kind": "train", "loss": 9.0}, *rows])
    for arm in ("dflash", "dspark"):
        write(tmp_path / "apart" / arm, [r for r in rows if r["arm"] == arm])
    first, second = training.curves(together), training.curves(tmp_path / "apart")
    assert first.equals(second)
    assert list(first.decoded_tau) == [2.1, 2.2, 2.1, 2.2]  # a train row is no evaluation


def test_the_best_decoded_tau_stands_in_the_legend_with_its_step(tmp_path):
    rows = [
        row(s, "dflash", decoded_tau=t, decoded_blocks=b) for s, t, b in ((10, 2.5, 80), (20, 3.25, 90), (30, 3, 85))
    ]
    figure = training.draw(training.curves(write(tmp_path, rows)))
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["DFlash: 3.25 at 20"]
    assert training.notes(training.curves(tmp_path)) == [
        "Decoded tau is over 80 to 90 verify blocks a point, without an interval."
    ]


def test_nothing_decoded_is_said(tmp_path):
    assert training.notes(training.curves(write(tmp_path, [row(10, "dflash")])))[0].startswith("Nothing was decoded")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"step": 20, "arm": "dflash", "kind": "train"}], "no evaluation yet"),
        ([row("x", "dflash")], "step and arm"),
        ([row(1, "dflash", decoded_tau=[1])], "decoded_tau is no number"),
    ],
)
def test_other_files_are_one_line(tmp_path, rows, says):
    with pytest.raises(UserError, match=says):
        training.curves(write(tmp_path, rows))


def test_the_command_draws_a_training_folder(tmp_path):
    from sglang_specbench.cli import app

    folder = write(tmp_path / "train", [row(10, "dflash", decoded_tau=2.0, decoded_blocks=80)])
    result = CliRunner().invoke(app, ["plot", str(folder), "--out", str(tmp_path / "figures")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figures/training.svg").read_text().count("DFlash: 2.00 at 10") == 1
    refused = CliRunner().invoke(app, ["plot", str(folder), "--arms", "dflash"])
    assert refused.exit_code != 0

"""What a drafter says of its training goes from its folder into plan, header and Table 4, and nothing else does."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.load_results import load_results
from harness.measure.cell import Measured
from harness.measure.launch import Session
from harness.sweep import plan
from harness.tables import registry
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic
from tests.harness.made import sweep_text, toy

SAID = {
    "schema": 1, "arm": "lilicorr", "contract": {"learning_rate": 5e-4, "epochs": 3, "batch": 8, "length": 512},
    "recipe": {"model": {"lilicorr_candidate_topk": 4}, "loss": {"gamma": 0.5}}, "steps": 1200, "seed": 1200,
    "corpus_digest": "c" * 64, "commit": None, "target_digest": "t" * 64, "head_parameters": 4321,
}  # fmt: skip


def planned(tmp_path, said=None):
    toy(tmp_path)
    if said is not None:
        (tmp_path / "dflash" / "provenance.json").write_text(said)
    (tmp_path / "sweep.toml").write_text(sweep_text(tmp_path))
    return plan.make(tmp_path / "sweep.toml")[1]


def test_the_plan_takes_it_and_keeps_it(tmp_path):
    made = planned(tmp_path, json.dumps(SAID))
    (tmp_path / "run").mkdir()
    plan.write(made, tmp_path / "run")
    for found in (made, plan.read(tmp_path / "run")):
        assert {launch.arm: dict(launch.provenance) for launch in found.launches} == {"ar": {}, "dflash": SAID}


def test_a_checkpoint_from_elsewhere_has_none(tmp_path):
    assert {dict(launch.provenance) == {} for launch in planned(tmp_path).launches} == {True}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema": 2}', '{"schema": 1, "contract": 3}'])
def test_a_file_that_is_no_provenance_is_refused_by_name(tmp_path, text):
    with pytest.raises(UserError, match=r"provenance\.json: "):
        planned(tmp_path, text)


def test_the_header_takes_it_from_the_launch(tmp_path):
    launch = planned(tmp_path, json.dumps(SAID)).launches[-2]
    assert launch.arm == "dflash"
    session = object.__new__(Session)
    session.planned, session._shown = launch, {}
    session.order = SimpleNamespace(url="", call="")
    session.allocation = planned(tmp_path).allocations[0]
    header = session._header(launch.cells[0], Measured(outcome="missing_set", reason="x"), "", None)
    assert header.provenance == SAID


def table(tmp_path, said):
    cells = [synthetic.cell("mini", arm, "gsm8k", prompts=8) for arm in ("ar", "dflash", "lilicorr")]
    made = [(replace(header, provenance=said.get(header.cell.arm, {})), rows) for header, rows in synthetic.run(cells)]
    found = registry.table(load_results(str(synthetic.write(tmp_path / "run", made))), "4")
    names = [column.name.removesuffix(" \N{DAGGER}") for column in found.columns]
    return {row.label: dict(zip(names, (cell.content for cell in row.cells), strict=True)) for row in found.rows}


def test_table_4_prints_what_the_drafter_says_and_holes_where_it_says_nothing(tmp_path):
    rows = table(tmp_path, {"lilicorr": SAID})
    assert rows["Learning rate"]["mini LiLiCorr"].text == "0.0005"
    assert rows["Epochs"]["mini LiLiCorr"].text == "3"
    assert rows["Weight of the reranker objective, Eq. (6)"]["mini LiLiCorr"].text == "0.5"
    assert rows["Optimiser steps"]["mini LiLiCorr"].text == "1,200"
    assert rows["Parameters of the head"]["mini LiLiCorr"].text == "4,321"
    assert "no commit" in rows["Commit of the trainer"]["mini LiLiCorr"].reason
    assert "does not say it" in rows["Cosine scale"]["mini LiLiCorr"].reason
    assert "no provenance.json" in rows["Learning rate"]["mini DFlash"].reason
    assert "no provenance.json" in rows["Optimiser steps"]["mini DFlash"].reason


def test_an_unknown_recipe_is_a_hole(tmp_path):
    rows = table(tmp_path, {"lilicorr": {**SAID, "contract": None, "recipe": None}})
    assert "does not say it" in rows["Learning rate"]["mini LiLiCorr"].reason

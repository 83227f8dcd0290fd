"""``specbench tables RUN``: holes, daggers, traces, files, refusals."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.audit.certificate import RULES
from harness.audit.coverage import audit_mark
from harness.load_results import load_results
from harness.schema.cell import Cell
from harness.stats.estimate import Missing
from harness.store import run as store
from harness.tables import registry, trace
from harness.tables.paper_rest import RECIPE
from harness.tables.render import FORMATS
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic

ARMS = ("ar", "dflash", "lilicorr", "lilicorr-exact")


def cells() -> list[Cell]:
    greedy = [
        synthetic.cell("mini", arm, "speed-qualitative", prompts=22, repeat=r, concurrency=c)
        for arm in ARMS for r in (0, 1) for c in (1, 4)
    ]  # fmt: skip
    sampled = [
        synthetic.cell("mini", arm, "speed-qualitative", 1.0, prompts=22, seed=s)
        for arm in (*ARMS[:3], "lilicorr-argmax") for s in (42, 43)
    ]  # fmt: skip
    return [*greedy, *sampled]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "runs" / "made"
    return synthetic.write(folder, synthetic.run(cells()))


@pytest.fixture(scope="module")
def results(run):
    return load_results(str(run))


def command(*args):
    from sglang_specbench.cli import app

    return CliRunner().invoke(app, ["tables", *map(str, args)], catch_exceptions=False)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", registry.TABLES)
def test_every_table_in_every_format(results, name, form):
    table = registry.table(results, name)
    assert FORMATS[form][0](table)
    assert bool(table.rows) == (name not in ("6", "9", "11", "rounding"))  # one target only; a measured run


def test_a_failed_cell_is_a_hole_with_its_reason_in_the_table(tmp_path):
    made = [
        synthetic.failed(h, "server_died", "exit -9 <b>") if h.cell.arm == "lilicorr" else (h, r)
        for h, r in synthetic.run(cells())
    ]
    table = registry.table(load_results(str(synthetic.write(tmp_path, made))), "5")
    columns = [c.group for c in table.columns]
    hole = table.rows[0].cells[columns.index("LiLiCorr †")]
    assert hole.content == Missing("seed 42: server_died: exit -9 <b>")
    assert "server_died: exit -9 &lt;b&gt;" in FORMATS["html"][0](table)


def test_concurrency_tables_take_what_ran_at_several_concurrencies(results):
    table = registry.table(results, "2")
    assert [row.label for row in table.rows] == ["1", "4"]
    assert [c.name for c in table.columns] == ["LiLiCorr †", "DFlash †"]  # made up, so nobody audited them


def test_every_number_can_be_traced_to_rows_files_and_estimator(run, results):
    table = registry.table(results, "5")
    lines = "\n".join(trace.trace(results, [run], table, 1, 2))
    assert "estimator: 1 + correct / blocks" in lines
    sources = results.sources[table.cell(1, 2).setting]
    assert len(sources) == 2  # two repeats
    for cell in sources:
        assert str(store.cells_dir(run) / f"{cell}.parquet") in lines
    assert lines.count("speed-qualitative-21 ") == 2  # the last row of each


def test_tracing_every_cell_of_every_table_finds_something(run, results):
    for name in registry.TABLES:
        table = registry.table(results, name)
        for row in range(1, len(table.rows) + 1, 3):
            for column in range(1, len(table.columns) + 1):
                assert list(trace.trace(results, [run], table, row, column))


@pytest.mark.parametrize("bad", ["5", "5:1", "5:0:1", "5:a:1", "5:99:1", "99:1:1"])
def test_a_bad_address_is_a_users_mistake(run, bad):
    with pytest.raises(UserError):
        command(run, "--trace", bad)


def test_files_are_written_one_a_table(run, tmp_path):
    done = command(run, "--format", "tex", "--out", tmp_path, "--table", "5", "--table", "ledger")
    assert done.exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger.tex", "table05.tex"]


def test_the_first_three_tables_are_printed_the_others_named_and_all_written(run, results, tmp_path):
    filled = [name for name in registry.TABLES if registry.table(results, name).rows]
    done = command(run, "--format", "md")
    assert done.stdout == command(run, "--format", "md", *(f"--table={name}" for name in filled[:3])).stdout
    assert f"more tables: {', '.join(filled[3:])} (--table NAME prints one" in done.stderr
    assert "for tables: 6, 9, 11, rounding" in done.stderr
    command(run, "--format", "md", "--out", tmp_path)
    assert {p.stem for p in tmp_path.iterdir()} == {registry.filename(name) for name in filled}
    assert "more tables" not in command(run, "--table", "5").stderr


@pytest.mark.parametrize("args", [("--format", "xml"), ("--table", "12")])
def test_unknown_names_write_nothing(run, tmp_path, args):
    with pytest.raises(UserError, match=args[1]):
        command(run, *args, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_such_run_and_no_cells(tmp_path):
    with pytest.raises(UserError, match="no such run folder"):
        load_results(str(tmp_path / "nothing"))
    with pytest.raises(UserError, match="no cells"):
        load_results(str(tmp_path))


def test_two_folders_of_one_experiment_are_one_run(tmp_path):
    made = list(synthetic.run(cells()))
    synthetic.write(tmp_path / "a", made[:10])
    synthetic.write(tmp_path / "b", made[10:])
    both = load_results(str(tmp_path / "a"), str(tmp_path / "b"))
    synthetic.write(tmp_path / "whole", made)
    assert both.values == load_results(str(tmp_path / "whole")).values


def test_unlike_folders_are_refused_with_key_and_both_values(tmp_path):
    from dataclasses import replace

    made = list(synthetic.run(cells()))
    other = [(replace(h, environment={**h.environment, "device_name": "H200"}), r) for h, r in made[10:]]
    synthetic.write(tmp_path / "a", made[:10])
    synthetic.write(tmp_path / "b", other)
    with pytest.raises(UserError, match="device_name") as refusal:
        load_results(str(tmp_path / "a"), str(tmp_path / "b"))
    assert "synthetic" in str(refusal.value)
    assert "H200" in str(refusal.value)
    with pytest.raises(UserError, match="paper"):
        load_results(str(tmp_path / "a"), "paper")


CELL = {
    "arm": "lilicorr", "target_digest": "t", "draft_digest": "d", "versions": (), "device": "cuda", "dtype": "bfloat16",
    "server": (),
}  # fmt: skip


def certificate(**changes):
    return {
        "arm": "lilicorr", "target_digest": "t", "draft_digest": "d", "versions": {}, "server": [], "rules": RULES,
        "attestation": {"device": "cuda", "dtype": "bfloat16"}, "verdict": "pass", "date": "2026-11-29", "samples": 9,
        **changes,
    }  # fmt: skip


def test_the_newest_fitting_certificate_decides():
    assert audit_mark([certificate()], CELL) == ""
    assert audit_mark([certificate()], {**CELL, "draft_digest": "new"}) == "unaudited"
    assert audit_mark([certificate(), certificate(verdict="fail", date="2026-11-30")], CELL) == "fail"
    assert audit_mark([], CELL) == "unaudited"


def test_unaudited_arms_carry_a_dagger_until_certified(run):
    assert "LiLiCorr †" in command(run, "--format", "md", "--table", "5").output
    folder = run.parent.parent / "certificates"
    folder.mkdir()
    own = certificate(target_digest="mini-weights", draft_digest="lilicorr-weights")
    (folder / "lilicorr.json").write_text(json.dumps(own))
    text = command(run, "--format", "md", "--table", "5").output
    assert "LiLiCorr †" not in text
    assert "DFlash †" in text
    (folder / "lilicorr.json").write_text(json.dumps({**own, "verdict": "fail"}))
    for table in ("5", "speed"):
        text = command(run, "--format", "md", "--table", table).output
        assert "FAILED its audit (does it sample from the target's distribution? specbench audit): LiLiCorr." in text
        assert "unaudited (does it" in text


def test_what_is_no_certificate_is_named(run):
    folder = run.parent.parent / "certificates"
    folder.mkdir(exist_ok=True)
    (folder / "broken.json").write_text("{")
    with pytest.raises(UserError, match=r"broken.json: not a certificate"):
        command(run, "--format", "md", "--table", "5")
    (folder / "broken.json").unlink()


def test_the_recipes_of_this_tree_agree_with_the_papers_configuration(tmp_path):
    """A drafter trained by them says the printed values, numbers as numbers, in every row that a recipe sets."""
    folder = Path(__file__).parents[3] / "drafters"
    recipes = {"contract": "training/contract.toml", "recipe": "lilicorr/recipe.toml"}
    said = {key: tomllib.loads((folder / name).read_text()) for key, name in recipes.items()}
    made = synthetic.run([synthetic.cell("mini", "lilicorr", "gsm8k", prompts=4)])
    cells = [(replace(header, provenance={"schema": 1, **said}), rows) for header, rows in made]
    rows = registry.table(load_results(str(synthetic.write(tmp_path / "run", cells))), "4").rows
    compared = [(row.label, *(cell.content for cell in row.cells[1:])) for row in rows if row.label in RECIPE]
    assert len(compared) == len(RECIPE)
    for label, paper, own in compared:
        assert plain(own.text) == plain(paper.text), label


def plain(text):
    return [float(w) if w.replace(".", "").replace("e-", "").isdigit() else w for w in text.replace(",", " ,").split()]

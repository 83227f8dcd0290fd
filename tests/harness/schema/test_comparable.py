"""The table of comparability: complete, and each entry refuses in each reader.

Entries are tried by changing one field in one cell of a small run, and in all cells of a second one.
"""

from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest

from harness.gate.compare import as_table, compare
from harness.gate.verdict import Rules, gate
from harness.load_results import load_results
from harness.schema import comparable
from harness.schema.cell import Cell
from harness.schema.comparable import (
    ATTESTATION,
    ATTESTED,
    CELL,
    ENV,
    ENVIRONMENT,
    EVERY_ARM,
    FIELDS,
    HEADER,
    Among,
    Role,
)
from harness.schema.header import Header
from harness.serve.environment import environment
from harness.serve.responses import ServerInfo
from harness.stats.estimates import measure
from harness.stats.greedy_match import equalities
from harness.store import cell_file, row_checks
from harness.store import run as store
from harness.tables.render import markdown
from sglang_specbench.attestation import Attestation
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic

INFO = {"served_model_name": "x", "version": "0.5.23", "internal_states": []}
SEEN = {"environment": dict.fromkeys(ENVIRONMENT, "x"), "attestation": dict.fromkeys(ATTESTATION, "x") | {"window": 16}}
VALUES = {int: 77, float: 0.5, str: "other", bool: True, tuple: ("--other",)}
FITTING = {"prompts": 11, "max_new_tokens": 4095, ATTESTED + "window": 17}  # values that the rows still keep to
ALIKE = [name for name, entry in FIELDS.items() if entry.role in (Role.COMPARE, Role.MERGE)]
COMPARED = [name for name, entry in FIELDS.items() if entry.role is Role.COMPARE]
CELLS = [synthetic.cell("toy", arm, "gsm8k", prompts=12, repeat=r) for r in (0, 1) for arm in ("ar", "dflash")]


def made(cells, hashed="h"):
    """Header and rows of each cell, as a server that attests would give them."""
    for header, rows in synthetic.run(cells):
        ran = [replace(row, prompt_hash=f"{hashed}{row.index}", finish_reason="length") for row in rows]
        digest = row_checks.prompts_digest(cell_file.as_table(ran))
        yield replace(header, **SEEN, prompts_digest=digest), ran


RUN = list(made(CELLS))


def changed(one, name):
    """Another value of one field in a cell, with rows that belong to it."""
    header, rows = one
    value = FITTING.get(name, "other")
    if name.startswith(ENV):
        return replace(header, environment={**header.environment, name.removeprefix(ENV): value}), rows
    if name.startswith(ATTESTED):
        return replace(header, attestation={**header.attestation, name.removeprefix(ATTESTED): value}), rows
    if name == "prompts_digest":
        return next(made([header.cell], hashed="other"))
    value = FITTING.get(name, VALUES[type(getattr(header.cell, name))])
    return next(made([replace(header.cell, **{name: value})]))


def all_changed(name):
    """The run measured with another value: of its drafted arm, where only an arm's cells must agree."""
    one_arm = FIELDS[name].among in (Among.ARM, Among.SETTING)
    return [one if one_arm and one[0].cell.arm == "ar" else changed(one, name) for one in RUN]


def with_one_changed(name):
    """The last cell, an arm's second repeat, differs in one field."""
    return [*RUN[:-1], changed(RUN[-1], name)]


def frames(folder, run):
    """Both frames, past the store's own refusal."""
    parts = []
    for i, one in enumerate(run):
        parts.append(store.load(synthetic.write(folder / str(i), [one])))
    cells = pd.concat([p.cells for p in parts], ignore_index=True)
    return cells, pd.concat([p.rows.astype({"cell": object}) for p in parts], ignore_index=True)


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (CELL, {f.name for f in fields(Cell)}),
        (HEADER, {f.name for f in fields(Header)}),
        (ATTESTATION, {f.name for f in fields(Attestation)}),
        (ENVIRONMENT, set(environment(ServerInfo.parse(INFO), "cpu", remote=False, attested=True))),
    ],
)
def test_every_field_has_exactly_one_entry(table, names):
    """Whoever adds a field says here what it means for two numbers to differ in it."""
    assert set(table) == names


def test_what_is_only_shown_says_why():
    assert [name for name, entry in FIELDS.items() if (entry.role is Role.SHOWN) != bool(entry.reason)] == []


def test_every_entry_is_what_the_page_promises():
    """docs/comparability.md states the table a second time: a role that changes in one of them is seen here."""
    page = (Path(__file__).parents[3] / "docs" / "comparability.md").read_text()
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    promised = {(of, field.strip("`")): (role, among, said.split("; ")) for of, field, role, among, said in lines[1:]}
    tables = {"cell": CELL, "header": HEADER, "environment": ENVIRONMENT, "attestation": ATTESTATION}
    entries = {(of, field): entry for of, table in tables.items() for field, entry in table.items()}
    assert promised.keys() == entries.keys()
    for place, (role, among, said) in promised.items():
        entry = entries[place]
        judged = entry.role in (Role.COMPARE, Role.MERGE)
        assert (role, among) == (entry.role, entry.among.name.lower() if judged else ""), place
        found = ("speed" in said, "a certificate holds for its value only" in said)
        assert found == (entry.speed, entry.certified), place


def test_a_settings_fields_are_what_the_tables_look_up():
    assert {n for n, e in CELL.items() if e.role is Role.SETTING} == set(Among.SETTING.value)


@pytest.mark.parametrize("name", ALIKE)
def test_the_store_refuses_to_load_and_to_merge(tmp_path, name):
    odd = with_one_changed(name)
    synthetic.write(tmp_path / "one", odd)
    with pytest.raises(UserError, match=f"unlike cells: {comparable.shown(name)} is "):
        store.load(tmp_path / "one")
    parts = [synthetic.write(tmp_path / "a", odd[:-1]), synthetic.write(tmp_path / "b", odd[-1:])]
    with pytest.raises(UserError, match=f"unlike cells: {comparable.shown(name)} is "):
        store.merge(parts, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ALIKE)
def test_estimates_are_refused(tmp_path, name):
    with pytest.raises(UserError, match=f"unlike cells: {comparable.shown(name)} is "):
        measure(*frames(tmp_path, with_one_changed(name)), "made")


RIVALS = [n for n, e in CELL.items() if n != "arm" and (e.role is Role.SETTING or n in ALIKE) and e.among in EVERY_ARM]


def test_like_greedy_outputs_are_compared(tmp_path):
    (found,) = equalities(*frames(tmp_path, [RUN[0], RUN[-1]]))
    assert (found.arm, found.compared) == ("dflash", 12)


@pytest.mark.parametrize("name", RIVALS)
def test_greedy_outputs_of_unlike_cells_are_not_compared(tmp_path, name):
    """Neither equal nor broken: another question was asked."""
    assert list(equalities(*frames(tmp_path, [RUN[0], changed(RUN[-1], name)]))) == []


def both(folder, name):
    """The run, and one measured with another value."""
    pairs = (("a", RUN), ("b", all_changed(name)))
    return [load_results(str(synthetic.write(folder / name_, one))) for name_, one in pairs]


@pytest.mark.parametrize("name", COMPARED)
def test_two_runs_are_not_compared(tmp_path, name):
    """Refused in compare and in the gate; tau alone may be judged across what only speed depends on."""
    results = both(tmp_path, name)
    found = [d for d in compare(*results) if (d.setting.arm, d.quantity) == ("dflash", "throughput")]
    assert {d.verdict for d in found} == {"not comparable"}
    assert all(comparable.shown(name) in d.reason for d in found)
    outcome = gate(results[1], results[0], Rules())
    assert outcome.exit_code == 4
    assert any(comparable.shown(name) in t.reason for t in outcome.troubles)
    alone = gate(results[1], results[0], Rules(metrics=("tau",)))
    assert (alone.exit_code == 4) != FIELDS[name].speed


@pytest.mark.parametrize("name", [n for n in ALIKE if n not in COMPARED])
def test_what_may_differ_between_two_runs_is_named(tmp_path, name):
    results = both(tmp_path, name)
    text = markdown(as_table(*results, compare(*results), "tau"))
    assert f"differs: {comparable.shown(name)}" in text.replace("\\", "")
    outcome = gate(results[1], results[0], Rules())
    assert outcome.exit_code in (0, 3)
    assert any(note.startswith(f"differs: {comparable.shown(name)}") for note in outcome.notes)


@pytest.mark.parametrize("key", ["environment", "attestation"])
def test_an_unknown_key_must_be_equal_to_merge(tmp_path, key):
    header, rows = RUN[-1]
    later = replace(header, **{key: {**getattr(header, key), "of_a_later_version": 1}})
    synthetic.write(tmp_path, [*RUN[:-1], (later, rows)])
    with pytest.raises(UserError, match=r"of_a_later_version is None in .* and 1 in "):
        store.load(tmp_path)


def test_a_failed_cell_may_differ(tmp_path):
    run = with_one_changed("env_driver")
    synthetic.write(tmp_path, [*run[:-1], synthetic.failed(run[-1][0], "oom", "8 GB")])
    assert len(store.load(tmp_path).cells) == 4


def test_a_plan_of_another_configuration_is_refused(tmp_path):
    """A changed sweep, run into the folder of the old one: neither averaged nor shown under the new plan."""
    new = [replace(cell, context_length=4096) for cell in CELLS]
    folder = synthetic.write(tmp_path, RUN, planned=new)
    with pytest.raises(UserError, match=r"context_length is 8192 in .* and 4096 in the plan"):
        load_results(str(folder))


@pytest.mark.parametrize("change", [{"server": ("--x",)}, {"context_length": 512}, {"capacity": 8}])
def test_two_configurations_in_one_folder_are_no_repeats(tmp_path, change):
    """They were averaged: a speedup of 0.48 where each folder alone said 0.98."""
    new = [replace(cell, **change, repeat=2) for cell in CELLS[:2]]
    with pytest.raises(UserError, match=f"{next(iter(change))} is "):
        load_results(str(synthetic.write(tmp_path, [*RUN, *made(new)])))

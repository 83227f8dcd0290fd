"""The table of comparability: complete, and each entry refuses in each reader.

Entries are tried by changing one field in one cell of a small run, and in all cells of a second one.
"""

from dataclasses import fields, replace

import pandas as pd
import pytest

from harness.gate.compare import as_table, compare
from harness.gate.verdict import Rules, gate
from harness.load_results import load_results
from harness.schema import comparable
from harness.schema.cell import Cell
from harness.schema.comparable import ATTESTATION, ATTESTED, CELL, ENV, ENVIRONMENT, FIELDS, HEADER, Among, Role
from harness.schema.header import Header
from harness.serve.environment import environment
from harness.serve.responses import ServerInfo
from harness.stats.estimates import measure
from harness.store import run as store
from harness.tables.render import markdown
from sglang_specbench.attestation import Attestation
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic

ENVIRONMENT_SEEN = dict.fromkeys(ENVIRONMENT, "x")
ATTESTED_SEEN = dict.fromkeys(ATTESTATION, "x")
INFO = {"served_model_name": "x", "version": "0.5.23", "internal_states": []}
VALUES = {int: 77, float: 7.5, str: "other", bool: True, tuple: ("--other",)}
ALIKE = [name for name, entry in FIELDS.items() if entry.role in (Role.COMPARE, Role.MERGE)]
COMPARED = [name for name, entry in FIELDS.items() if entry.role is Role.COMPARE]


def other(value):
    return VALUES[type(value)]


def changed(header, name):
    """The header with another value of one field."""
    if name.startswith(ENV):
        return replace(header, environment={**header.environment, name.removeprefix(ENV): "other"})
    if name.startswith(ATTESTED):
        return replace(header, attestation={**header.attestation, name.removeprefix(ATTESTED): "other"})
    if name in CELL:
        return replace(header, cell=replace(header.cell, **{name: other(getattr(header.cell, name))}))
    return replace(header, **{name: other(getattr(header, name))})


def made(repeats=2):
    cells = [
        synthetic.cell("toy", arm, "gsm8k", prompts=12, repeat=r) for r in range(repeats) for arm in ("ar", "dflash")
    ]
    return [
        (replace(h, environment=ENVIRONMENT_SEEN, attestation=ATTESTED_SEEN, prompts_digest="p"), rows)
        for h, rows in synthetic.run(cells)
    ]


def with_one_changed(run, name):
    """The last cell, an arm's second repeat, differs in one field."""
    header, rows = run[-1]
    return [*run[:-1], (changed(header, name), rows)]


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


def test_a_settings_fields_are_what_the_tables_look_up():
    assert {n for n, e in CELL.items() if e.role is Role.SETTING} == set(Among.SETTING.value)


@pytest.mark.parametrize("name", ALIKE)
def test_the_store_refuses_to_load_and_to_merge(tmp_path, name):
    run = made()
    synthetic.write(tmp_path / "one", with_one_changed(run, name))
    with pytest.raises(UserError, match=f"unlike cells: {comparable.shown(name)} is "):
        store.load(tmp_path / "one")
    changed_, rest = with_one_changed(run, name)[-1:], run[:-1]
    parts = [synthetic.write(tmp_path / "a", rest), synthetic.write(tmp_path / "b", changed_)]
    with pytest.raises(UserError, match=f"unlike cells: {comparable.shown(name)} is "):
        store.merge(parts, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ALIKE)
def test_estimates_are_refused(tmp_path, name):
    with pytest.raises(UserError, match=f"unlike cells: {comparable.shown(name)} is "):
        measure(*frames(tmp_path, with_one_changed(made(), name)), "made")


@pytest.mark.parametrize("name", COMPARED)
def test_two_runs_are_not_compared(tmp_path, name):
    """Refused in compare and in the gate; tau alone may be judged across what only speed depends on."""
    run = made()
    results = [
        load_results(str(synthetic.write(tmp_path / folder, one)))
        for folder, one in (("a", run), ("b", [(changed(h, name), r) for h, r in run]))
    ]
    found = [d for d in compare(*results) if d.quantity == "throughput"]
    assert {d.verdict for d in found} == {"not comparable"}
    assert all(comparable.shown(name) in d.reason for d in found)
    outcome = gate(results[1], results[0], Rules())
    assert outcome.exit_code == 4
    assert any(comparable.shown(name) in t.reason for t in outcome.troubles)
    alone = gate(results[1], results[0], Rules(metrics=("tau",)))
    assert (alone.exit_code == 4) != FIELDS[name].speed


@pytest.mark.parametrize("name", [n for n in ALIKE if n not in COMPARED])
def test_what_may_differ_between_two_runs_is_named(tmp_path, name):
    run = made()
    results = [
        load_results(str(synthetic.write(tmp_path / folder, one)))
        for folder, one in (("a", run), ("b", [(changed(h, name), r) for h, r in run]))
    ]
    text = markdown(as_table(*results, compare(*results), "tau"))
    assert f"differs: {comparable.shown(name)}" in text.replace("\\", "")
    outcome = gate(results[1], results[0], Rules())
    assert outcome.exit_code in (0, 3)
    assert any(note.startswith(f"differs: {comparable.shown(name)}") for note in outcome.notes)


@pytest.mark.parametrize("key", ["environment", "attestation"])
def test_an_unknown_key_must_be_equal_to_merge(tmp_path, key):
    run = made()
    header, rows = run[-1]
    later = replace(header, **{key: {**getattr(header, key), "of_a_later_version": 1}})
    synthetic.write(tmp_path, [*run[:-1], (later, rows)])
    with pytest.raises(UserError, match=r"of_a_later_version is None in .* and 1 in "):
        store.load(tmp_path)


def test_a_failed_cell_may_differ(tmp_path):
    run = with_one_changed(made(), "env_driver")
    synthetic.write(tmp_path, [*run[:-1], synthetic.failed(run[-1][0], "oom", "8 GB")])
    assert len(store.load(tmp_path).cells) == 4


def test_a_plan_of_another_configuration_is_refused(tmp_path):
    """A changed sweep, run into the folder of the old one: neither averaged nor shown under the new plan."""
    run = made()
    new = [replace(h.cell, context_length=4096) for h, _ in run]
    folder = synthetic.write(tmp_path, run, planned=new)
    with pytest.raises(UserError, match=r"context_length is 8192 in .* and 4096 in the plan"):
        load_results(str(folder))


@pytest.mark.parametrize("change", [{"server": ("--x",)}, {"context_length": 512}, {"capacity": 8}])
def test_two_configurations_in_one_folder_are_no_repeats(tmp_path, change):
    """They were averaged: a speedup of 0.48 where each folder alone said 0.98."""
    run = made(repeats=1)
    new = list(synthetic.run([replace(h.cell, **change) for h, _ in run]))
    slow = [(replace(h, wall_s=3 * h.wall_s) if h.cell.arm == "dflash" else h, r) for h, r in new]
    alike = [
        (replace(h, environment=ENVIRONMENT_SEEN, attestation=ATTESTED_SEEN, prompts_digest="p"), r) for h, r in slow
    ]
    with pytest.raises(UserError, match=f"{next(iter(change))} is "):
        load_results(str(synthetic.write(tmp_path, [*run, *alike])))

"""No reader returns a number that differs from the whole run's without naming the reason.

Every mutation of `tests.harness.mutations` is tried on a small run. Either the run is refused, by a word that tells
what was altered, or each reader whose numbers changed says so: estimates and tables by a note, the gate by its exit
code, comparison, figures and dashboard by their footnotes.
"""

import shutil
from collections import Counter

import pytest

from harness.gate import record
from harness.gate.compare import QUANTITIES, as_table, compare
from harness.gate.report import markdown as report
from harness.gate.verdict import Rules, gate
from harness.load_results import frames_of, load_results
from harness.stats.greedy_match import equalities
from harness.tables import registry, run_summary
from harness.tables.build import doubts
from harness.tables.render import markdown
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic
from tests.harness.mutations import made, mutations

ARMS = ("ar", "dflash", "lilicorr")
GREEDY = [
    synthetic.cell("toy", arm, name, prompts=8, repeat=repeat, replica=replica)
    for name in ("gsm8k", "mt-bench") for repeat in (0, 1) for arm in ARMS
    for replica in ((0, 1) if arm == "ar" else (0,))
]  # fmt: skip
SAMPLED = [synthetic.cell("toy", arm, "gsm8k", 1.0, prompts=8, seed=seed) for arm in ARMS for seed in (42, 43)]
CELLS = [*GREEDY, *SAMPLED]
EDITED = [GREEDY[0], next(c for c in GREEDY if c.arm == "lilicorr" and c.repeat), SAMPLED[-1]]
MUTATIONS = list(mutations(CELLS, EDITED))
WIDE = Rules(alpha=0.4, tau_margin=0.9, throughput_margin=0.9)  # so lenient that only naming can stop it
RUN = list(made(CELLS))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return synthetic.write(tmp_path_factory.mktemp("whole"), RUN)


@pytest.fixture(scope="module")
def truth(whole):
    results = load_results(str(whole))
    assert gate(results, results, WIDE).exit_code == 0
    return results, {name: body(registry.table(results, name)) for name in registry.TABLES}


def body(table):
    """The numbers and words of a table, without its footnotes."""
    return [(row.section, row.label, [cell.content for cell in row.cells]) for row in table.rows]


def silent(folder, results, truth, named):
    """Readers that show other numbers than the whole run's, and say none of the words ``named``."""
    expected, tables = truth
    said = {"estimates": "\n".join([*results.notes, *doubts(results)])}
    shown = {"estimates": results.values, "figures": results.per_cell.drop(columns="started_at").to_dict("records")}
    whole = {"estimates": expected.values, "figures": expected.per_cell.drop(columns="started_at").to_dict("records")}
    said["figures"] = "\n".join(doubts(results))
    for name in registry.TABLES:
        table = registry.table(results, name)
        shown[f"table {name}"], whole[f"table {name}"], said[f"table {name}"] = (
            body(table),
            tables[name],
            markdown(table),
        )
    differences = compare(results, expected)
    for quantity in QUANTITIES:
        table = as_table(results, expected, differences, quantity)
        shown[f"compare {quantity}"], whole[f"compare {quantity}"] = body(table), None
        said[f"compare {quantity}"] = markdown(table)
    outcome = gate(expected, results, WIDE)
    shown["gate"], whole["gate"] = (outcome.exit_code == 0 or None), None
    said["gate"] = report(outcome, "whole", "mutated")
    shown["history"] = record.entry("run", results, outcome.verdict).points
    whole["history"], said["history"] = record.entry("run", expected, "ok").points, said["gate"]
    frames = frames_of([folder])
    last = run_summary.build(results, frames, list(equalities(frames.cells, frames.rows)))
    shown["summary"], whole["summary"], said["summary"] = "", None, "\n".join(map(markdown, last))
    changed = [reader for reader in shown if shown[reader] != whole[reader]]
    return [r for r in changed if not any(word in said[r].replace("\\", "") for word in named)]


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_mutation_is_refused_or_named_by_every_reader(mutation, whole, truth, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "run")
    mutation.change(folder)
    try:
        results = load_results(str(folder))
    except UserError as refusal:
        named = str(refusal)
        if not any(word in named for word in mutation.named):
            pytest.fail(f"refused without a reason: {named}")
        return
    if results.values == truth[0].values and not results.notes:
        return  # every number is the whole run's
    assert silent(folder, results, truth, mutation.named) == []


def test_the_mutations_are_many_and_of_every_kind():
    kinds = Counter(mutation.kind for mutation in MUTATIONS)
    assert len(MUTATIONS) == len({str(m) for m in MUTATIONS}) >= 600
    assert {
        "removed",
        "renamed",
        "duplicated",
        "truncated",
        "edited column",
        "edited header",
        "measured otherwise",
    } <= set(kinds)

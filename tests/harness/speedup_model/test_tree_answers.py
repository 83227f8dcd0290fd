"""`specbench model --tree` and ``--rejection``: the table's numbers by hand, limits, and what is refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness.speedup_model.question import Question
from harness.speedup_model.tree_answers import read_marginals, rejection_tables, tree_tables
from sglang_specbench.cli import app
from sglang_specbench.errors import UserError

chances = st.lists(st.floats(0, 1), min_size=1, max_size=3).map(lambda xs: [x / max(1, sum(xs)) for x in xs])


def command(*args):
    done = CliRunner().invoke(app, ["model", *map(str, args)], catch_exceptions=True)
    if isinstance(done.exception, UserError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def lines_of(found):
    return next(table for name, table in found.items() if name.startswith("best trees"))


def test_a_tree_and_its_chain_by_hand():
    """Two nodes below an anchor of 0.5 and 0.4: siblings give 1.9 tokens, a chain 1.75; verification 1 + 0.1 a slot."""
    question = Question(cost=0.2, slope=0.1)
    found = tree_tables([[0.5, 0.4], [0.5, 0.4]], 2, question.costs, 1)
    line = lines_of(found)[-1]
    assert (line["nodes"], line["depth"], line["widest level"]) == (2, 1, 2)
    assert (line["chain: tokens"], line["tree: tokens"]) == (pytest.approx(1.75), pytest.approx(1.9))
    assert line["chain: speedup"] == pytest.approx(1.75 / (2 * 0.2 + 1.2))  # two draft passes
    assert line["tree: speedup"] == pytest.approx(1.9 / (0.2 + 1.2))  # one
    nodes = found["the best tree of 2 nodes"]
    assert [(n["parent"], n["candidate ranks"], n["survival"]) for n in nodes] == [
        (-1, "anchor", 1),
        (0, "0", pytest.approx(0.5)),
        (0, "1", pytest.approx(0.4)),
    ]


@settings(deadline=None, max_examples=50)
@given(st.lists(chances, min_size=1, max_size=5), st.integers(1, 40))
def test_a_tree_never_commits_less_than_the_chain_of_its_budget(marginals, nodes):
    for line in lines_of(tree_tables(marginals, nodes, Question().costs, 1)):
        assert line["tree: tokens"] >= line["chain: tokens"] - 1e-12
        assert 1 <= line["tree: tokens"] <= 1 + len(marginals) + 1e-12


def test_costs_from_rooflines_count_every_sequence():
    """On an H100 at batch 64 verification is arithmetic, so a tree too large is slower than a small one."""
    found = lines_of(tree_tables([[0.6, 0.2, 0.08]] * 15, 63, Question(target="qwen3-8b").costs, 64))
    speeds = [line["tree: speedup"] for line in found]
    assert max(speeds) > speeds[-1]
    alone = lines_of(tree_tables([[0.6, 0.2, 0.08]] * 15, 63, Question(target="qwen3-8b").costs, 1))
    assert [line["tree: speedup"] for line in alone] == sorted(line["tree: speedup"] for line in alone)


def test_a_tree_that_memory_does_not_hold_has_no_speedup():
    """603 sequences of 512 tokens and 16 positions fit on an H100 (docs/theory.md); 63 nodes take 48 more of each."""
    question = Question(target="qwen3-8b")
    small, *_, large = lines_of(tree_tables([[0.6, 0.2, 0.08]] * 15, 63, question.costs, 603))
    assert small["tree: speedup"] > 1
    assert large["tree: speedup"] == "does not fit"
    assert large["tree: tokens"] > small["tree: tokens"]


def test_marginals_from_a_file(tmp_path):
    path = tmp_path / "ranks.csv"
    path.write_text("0.5,0.25\n0.25,0.125\n")
    assert read_marginals(str(path)) == [[0.5, 0.25], [0.25, 0.125]]
    found = json.loads(command("--tree", 3, "--marginals", path, "--json"))
    assert lines_of(found)[-1]["tree: tokens"] == pytest.approx(1 + 0.5 + 0.25 + 0.125)
    assert "marginals of a depth" in str(found["assumptions"])


def test_the_chance_of_some_child_by_hand():
    """Target (.5, .3, .2), drafter (.2, .6, .2): one child 1 - TV = .7; then the residual is all on token 0."""
    one, two, three = rejection_tables("0.5,0.3,0.2:0.2,0.6,0.2")["some child accepted"]
    assert one["with replacement"] == one["without"] == pytest.approx(0.7)
    assert two["with replacement"] == pytest.approx(1 - 0.3 * 0.8)
    assert two["without"] == pytest.approx(1 - 0.3 * 0.5)  # only token 1 is ever rejected: 0 is half of the rest
    assert three["without"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--tree", 5), "--tree needs the candidates' chances"),
        (("--tree", 0, "--marginals", "0.5"), "--tree 0: not between 1 and 1,024 nodes"),
        (("--tree", 5, "--marginals", "0.6,0.7"), "sum to at most 1"),
        (("--tree", 5, "--marginals", "-0.1"), "chances lie between 0 and 1"),
        (("--tree", 5, "--marginals", "nan"), "chances lie between 0 and 1"),
        (("--tree", 5, "--marginals", "nosuch.csv"), "no numbers, and no such file"),
        (("--marginals", "0.5"), "--marginals says nothing without --tree"),
        (("--tree", 5, "--marginals", "0.5", "--alpha", "0.3"), "--alpha and --tree do not go together"),
        (("--tree", 5, "--marginals", "0.5", "--batch", "8"), "--batch says nothing without --target"),
        (("--rejection", "0.5,0.5"), "no P:Q"),
        (("--rejection", "0.5,0.5:1"), "2 tokens against 1"),
        (("--rejection", "0.5,0.4:0.5,0.5"), r"sum to 0\.9"),
        (("--rejection", "1,nan:0.5,0.5"), "chances of one side"),
        (("--rejection", "a:b"), "no numbers"),
        (("--rejection", ":".join([",".join(["0.125"] * 8)] * 2)), "8 tokens, all orders are summed"),
    ],
)
def test_what_is_refused(args, said):
    with pytest.raises(UserError, match=said):
        command(*args)

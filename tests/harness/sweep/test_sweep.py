"""A sweep file: what is accepted, and the one line for each thing that is not."""

import pytest

from harness.sweep import sweep
from sglang_specbench.errors import UserError
from tests.harness.made import sweep_text

GOOD = sweep_text("/models")

MISTAKES = {
    "unknown key": (("name =", "nmae ="), "unknown key 'nmae'", "did you mean 'name'?"),
    "unknown key of a panel": (("seeds =", "seed ="), "panel[0]: unknown key 'seed'", "did you mean 'seeds'?"),
    "unknown key of a set": (("prompts =", "promts ="), "unknown key 'promts'", "did you mean 'prompts'?"),
    "unknown arm": (('"dflash"]', '"dflsh"]'), "unknown arm 'dflsh'", "did you mean 'dflash'?"),
    "unknown target": (("arms =", 'targets = ["tyo"]\narms ='), "unknown target 'tyo'", "did you mean 'toy'?"),
    "negative concurrency": (
        ("concurrency = [1]", "concurrency = [-4]"),
        "concurrency -4 is not at least 1",
        "write 1 or more",
    ),
    "zero concurrency": (
        ("concurrency = [1]", "concurrency = [0]"),
        "concurrency 0 is not at least 1",
        "write 1 or more",
    ),
    "a word for a number": (
        ("seeds = [42]", 'seeds = ["a"]'),
        "seeds[0]: expected int, got 'a'",
        "write a whole number",
    ),
    "negative temperature": (
        ("temperatures = [0]", "temperatures = [-1]"),
        "temperature -1 is negative",
        "write 0 or more",
    ),
    "no temperature": (
        ("temperatures = [0]", "temperatures = [nan]"),
        "temperatures[0]: nan is no finite number",
        "write a number",
    ),
    "negative prompts": (("prompts = 4", "prompts = -1"), "prompts -1 is negative", "write 0 or more"),
    "empty list": (("seeds = [42]", "seeds = []"), "seeds is empty", "name at least one"),
    "no drafter": (('dflash = "/models/dflash"\n', ""), "target.toy.drafters: no 'dflash'", 'add "dflash" ='),
    "broken TOML": (("[[panel]]", "[[panel]"), "not valid TOML", "correct the line it names"),
    "bad order": (
        ('name = "t"', 'name = "t"\norder = "abab"'),
        "order: 'abab' is not one of 'abba', 'fixed'",
        "write one of them",
    ),
    "no repeats": (('name = "t"', 'name = "t"\nrepeats = 0'), "repeats 0 is not from 1 to 1000", "write such a number"),
    "no time": (("[[panel]]", "[server]\nstart_timeout_s = 0\n[[panel]]"), "start_timeout_s 0 is", "a positive number"),
    "no arms": (('arms = ["ar", "dflash"]\n', ""), "panel[0]: missing key 'arms'", "add it: a list"),
    "no path": (('path = "/models/target"\n', ""), "missing key 'path'", "add it: text in quotes"),
    "no target": (("[target.toy", "[tarx.toy"), "unknown key 'tarx'", "did you mean 'target'?"),
    "our own field": (('name = "t"', 'name = "t"\nwhere = "x"'), "unknown key 'where'", "remove it"),
}


def write(tmp_path, text):
    path = tmp_path / "s.toml"
    path.write_text(text)
    return path


def test_the_file_as_written_is_kept(tmp_path):
    loaded = sweep.load(write(tmp_path, GOOD))
    assert loaded.source == GOOD
    assert loaded.panel[0].arms == ("ar", "dflash")
    assert loaded.panel[0].temperatures == (0.0,)
    assert loaded.targets_of(loaded.panel[0]) == ("toy",)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_one_line_with_file_key_and_remedy(tmp_path, mistake):
    (old, new), message, hint = MISTAKES[mistake]
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        sweep.load(path)
    text = str(caught.value)
    assert str(path) in text
    assert message in text
    assert hint
    assert hint in text
    assert "\n" not in text
    assert caught.value.exit_code == 2


def test_a_misspelt_name_of_a_shipped_sweep():
    with pytest.raises(UserError, match="did you mean 'demo'"):
        sweep.load("dmo")
    with pytest.raises(UserError, match=r"nope\.toml: no such file"):
        sweep.load("nope.toml")


@pytest.mark.parametrize("name", sweep.shipped())
def test_every_shipped_sweep_loads(name):
    assert sweep.load(name).name == name.replace("_", "-")


def test_the_shipped_sweeps_are_those_of_the_docs():
    assert {"demo", "noise_floor", "paper_main", "paper_concurrency", "paper_head_cost", "paper_decode_rule"} <= set(
        sweep.shipped()
    )

"""What a sweep gives to its servers: refused where it cannot be meant, and part of every cell where it can."""

import pytest

from harness.sweep.arguments import refuse_out_of_range, refuse_unsplit, refuse_variables
from harness.sweep.plan import make
from sglang_specbench.errors import UserError
from tests.harness.made import sweep_text, toy


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--attention-backend fa3"], "'--attention-backend fa3' is one word .write ..--attention-backend., .fa3.."),
        (["--tp-size", "2", "--a b  c"], "write ..--a., .b., .c.."),
        (["fa3"], "'fa3' is a value without its flag"),
        (["X=1", "--tp-size", "2"], "'X=1' is a value without its flag"),
    ],
)
def test_words_that_sglang_would_not_understand_are_refused(args, words):
    with pytest.raises(UserError, match=rf"s\.toml: server\.args: .*{words}"):
        refuse_unsplit(args, "s.toml")


def test_a_value_may_hold_a_space():
    refuse_unsplit(["--json", '{"a": 1}', '--x={"a": 1}', "-h"], "s.toml")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HF_TOKEN", "would be written into every result"),
        ("api_key", "would be written into every result"),
        ("SPECBENCH_CONFIG", "is specbench's own to set"),
        ("SGLANG_DSPARK_USE_GREEDY_DRAFT", "is specbench's own to set"),
        ("A B", "names no variable"),
        ("", "names no variable"),
    ],
)
def test_variables_that_are_not_the_sweeps_to_set_are_refused(name, words):
    with pytest.raises(UserError, match=f"server.environment: '{name}' {words}"):
        refuse_variables({name: "x"}, "s.toml")


def test_variables_are_part_of_every_cell_and_reach_its_server(tmp_path):
    sweep = tmp_path / "s.toml"
    plain = sweep_text(toy(tmp_path))
    sweep.write_text(plain)
    before = make(sweep)[1]
    table = '[server]\nargs = ["--tp-size", "1"]\n[server.environment]\nSGLANG_B = "b"\nSGLANG_A = "a"\n[[panel]]'
    sweep.write_text(plain.replace("[[panel]]", table, 1))
    after = make(sweep)[1]
    assert {cell.server for cell in after.cells} == {("SGLANG_A=a", "SGLANG_B=b", "--tp-size", "1")}
    assert not {cell.id for cell in after.cells} & {cell.id for cell in before.cells}
    server = after.launches[0].server(port=1)
    assert (server.env["SGLANG_A"], server.argv[-2:]) == ("a", ("--tp-size", "1"))


@pytest.mark.parametrize("args", [["--mem-fraction-static", "1.5"], ["--x", "--mem-fraction-static=0"],
                                  ["--mem-fraction-static", "most"], ["--mem-fraction-static", "nan"]])  # fmt: skip
def test_a_share_of_memory_that_is_none_is_refused(args):
    with pytest.raises(UserError, match=r"s\.toml: server\.args: --mem-fraction-static \S+ .write a share above 0"):
        refuse_out_of_range(args, "s.toml")


def test_a_share_of_memory_is_passed_on(tmp_path):
    refuse_out_of_range(["--mem-fraction-static", "0.8", "--tp-size", "2"], "s.toml")
    sweep = tmp_path / "s.toml"
    args = '[server]\nargs = ["--mem-fraction-static", "1.5"]\n[[panel]]'
    sweep.write_text(sweep_text(toy(tmp_path)).replace("[[panel]]", args, 1))
    with pytest.raises(UserError, match=r"mem-fraction-static 1\.5"):
        make(sweep)


def test_a_name_in_capitals_is_a_near_one(tmp_path):
    sweep = tmp_path / "s.toml"
    sweep.write_text(sweep_text(toy(tmp_path)).replace("[panel.sets.mt-bench]", "[panel.sets.GSM8K]"))
    with pytest.raises(UserError, match=r"unknown prompt set 'GSM8K' .did you mean 'gsm8k'"):
        make(sweep)

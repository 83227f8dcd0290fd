"""`specbench model` on a made-up run with known truth: what it reads from a run's survival, and what it refuses."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.commands.model_options import batches
from harness.commands.model_survival import survival_tables
from harness.load_results import load_results
from harness.speedup_model.question import Question
from harness.speedup_model.run_survival import survivals
from harness.store import run as store
from sglang_specbench.cli import app
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic

ARMS = ("ar", "dflash", "lilicorr")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two sets, two concurrencies, T=0; the chance of a slot given the one before is 0.80 for DFlash on gsm8k."""
    cells = [
        synthetic.cell("Qwen3-8B", arm, name, prompts=40, concurrency=c, repeat=r)
        for arm in ARMS for name in ("gsm8k", "alpaca") for c in (1, 8) for r in (0, 1)
    ]  # fmt: skip
    return synthetic.write(tmp_path_factory.mktemp("model") / "run", synthetic.run(cells))


def command(*args):
    done = CliRunner().invoke(app, ["model", *map(str, args)], catch_exceptions=True)
    if isinstance(done.exception, UserError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_survival_is_the_runs_own_and_sums_to_tau(folder):
    results = load_results(str(folder))
    found = survivals(results, store.load(folder).rows, "dflash")
    assert len(found) == 4
    for survival in found:
        names = [f"a{k}" for k in range(1, 16)]
        assert survival.curve == pytest.approx([results.get(survival.setting, name).value for name in names])
        assert survival.by_prompt.T @ survival.weights == pytest.approx(survival.curve, abs=0.02)
        assert survival.weights.sum() == pytest.approx(1)


def test_alpha_is_found_again_with_both_intervals(folder):
    line = survival_tables(f"{folder}:dflash", Question())["acceptance of dflash, models fitted"][0]
    assert line["setting"].startswith("Qwen3-8B/dflash gsm8k")
    for name in ("bootstrap", "Wilson"):
        low, high = json.loads(line[name])
        assert abs(line["alpha"] - 0.80) < 5 * (high - low) / (2 * 1.96)  # odds below 1 in 10^6
        assert high - low < 0.05
    assert line["again"] == pytest.approx(line["first"], abs=0.04)  # the truth is independent
    assert line["tau, independent"] == pytest.approx(line["tau"], rel=0.02)


def test_repeats_at_temperature_0_are_no_new_trials(folder):
    """They say the same again, so two allocations do not narrow Wilson's interval."""
    rows, results = store.load(folder).rows, load_results(str(folder))
    found = survivals(results, rows, "dflash")[0]
    one = rows[rows.cell.astype(str) == results.sources[found.setting][0]]
    assert found.blocks == one.verify_ct.sum()


def test_widths_and_budgets_follow_the_costs(folder):
    """Free verification takes it all and gains nothing; a dear one is cut short, and gains."""
    free, dear = (
        survival_tables(f"{folder}:dflash", Question(parallel=True, cost=0.2, slope=slope)) for slope in (0.0, 0.1)
    )
    widths = [tables["best verification width (T=0)"][0]["best width"] for tables in (free, dear)]
    assert widths[0] == 16 > widths[1]
    gains = [tables["how much to verify"][0]["gain over all %"] for tables in (free, dear)]
    assert gains[0] == pytest.approx(0, abs=1e-9)
    assert gains[1] > 5
    for line in dear["how much to verify"]:
        assert line["verify all"] <= line["speedup"] <= line["speedup by prompt"] * (1 + 1e-12)


def test_rooflines_as_costs_and_the_draft_note(folder):
    out = command("--survival", f"{folder}:dflash", "--target", "qwen3-8b", "--t0", folder)
    assert "costs: rooflines, NVIDIA H100" in out
    assert f"t0, from {folder}: measured on 'synthetic', set against the roofline of h100" in out
    assert "draft: another at another width" in out


def test_costs_follow_what_the_arm_does(folder):
    """A block arm pays its draft once unless it is said otherwise, and no other drafter's roofline stands for it."""
    found, once, each = (
        json.loads(command("--survival", f"{folder}:dflash", "--cost", 0.2, "--json", *more))
        for more in ((), ("--parallel",), ("--no-parallel",))
    )
    assert found == once != each
    assert {"assumes": "a draft pass takes 0.2 target passes, once a block; a verified draft adds 0"} in found[
        "assumptions"
    ]
    with pytest.raises(UserError, match="--drafter qwen3-4b: dflash drafts a block in one pass"):
        command("--survival", f"{folder}:dflash", "--target", "qwen3-8b", "--drafter", "qwen3-4b")


def test_costs_of_another_target_or_of_too_many_sequences_are_in_doubt(folder):
    """At 100,000 tokens an H100 holds three sequences beside Qwen3-4B and its drafter: 62.9 GB / (168 KB x 100,016)."""
    found = json.loads(
        command("--survival", f"{folder}:dflash", "--target", "qwen3-4b", "--context", 100_000, "--json")
    )
    said = [line["doubt"] for line in found["doubts"]]
    assert "acceptance of Qwen3-8B, costs of qwen3-4b" in said
    assert "measured on 'synthetic', set against the roofline of h100" in said
    assert [text for text in said if "gsm8k T=0 c=8: memory holds 3 sequences of 100,000 tokens" in text]
    assert not [text for text in said if "c=1: memory holds" in text]
    for line in found["how much to verify"]:
        assert (line["verify all"] == "does not fit") == (line["batch"] > 3)


def test_a_fixed_cost_stands_in_every_table_of_passes():
    """T0 without end: a verification of a mixture is one pass, at every batch."""
    plain, late = (
        json.loads(command("--target", "qwen3-30b-a3b", "--batch", 1, "--t0", t0, "--json")) for t0 in (0, 1e6)
    )
    (before,), (after,) = (found["passes of a verification"] for found in (plain, late))
    assert after["ms"] == pytest.approx(before["ms"] + 1e6)
    assert after["overhead ms"] == pytest.approx(1e6)
    assert plain["experts a layer"][0]["verification / AR"] > 2
    assert late["experts a layer"][0]["verification / AR"] == pytest.approx(1, abs=1e-5)
    assert late["regime"][0]["within 10% of one from batch"] == 1


def test_costs_from_rooflines_say_what_they_rest_on():
    """Precisions, drafter, devices, context and t0, under each answer that takes them."""
    where = ("--target", "qwen3-8b-fp8", "--context", 1000, "--t0", 2, "--json")
    for asked in ((), ("--speedup", 2), ("--tree", 3, "--marginals", "0.6,0.2")):
        said = str(json.loads(command(*asked, *where))["assumptions"])
        for text in (
            "qwen3-8b-fp8: weights fp8, cache bf16, products fp8; attention at bf16",
            "drafter block: 5 layers, a pass a block, weights fp8, cache bf16, products fp8",
            "1 x NVIDIA H100",
            "1,000 cached tokens a sequence",
            "t0 = 2 ms",
        ):
            assert text in said


def test_the_residuals_of_a_run_name_the_largest_part(folder):
    found = json.loads(command("--run", folder, "--hardware", "h100", "--json"))
    assert {line["target"] for line in found["largest residuals"]} == {"Qwen3-8B"}
    (largest,) = found["largest parts"]
    parts = found["parts of the residual against the run's own decode times, %"]
    assert abs(largest["%"]) == max(abs(v) for line in parts for k, v in line.items() if k.startswith("residual_"))
    for line in parts:
        assert line["residual"] == pytest.approx(sum(v for k, v in line.items() if k.startswith("residual_")))


def test_a_planned_cell_without_numbers_is_named(tmp_path):
    cells = [synthetic.cell("Qwen3-8B", arm, name, prompts=5) for arm in ARMS for name in ("gsm8k", "alpaca")]
    made = [
        synthetic.failed(header, "oom", "no memory")
        if (header.cell.arm, header.cell.prompt_set) == ("dflash", "alpaca")
        else (header, rows)
        for header, rows in synthetic.run(cells)
    ]
    folder = synthetic.write(tmp_path / "run", made)
    for option in (("--run", folder), ("--survival", f"{folder}:dflash")):
        out = command(*option)
        assert "left out: Qwen3-8B/dflash alpaca T=0 c=1" in out
        assert "no memory" in out


def test_wrong_counts_make_no_curve(folder, monkeypatch):
    """A fault of ours, if the curve did not belong to the printed tau."""
    results = load_results(str(folder))
    rows = store.load(folder).rows
    rows["histogram"] = [None if h is None else np.roll(h, 1) for h in rows.histogram]
    with pytest.raises(AssertionError, match="survival sums to"):
        survivals(results, rows, "dflash")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--alpha", 0.5, "--speedup", 2), "--alpha and --speedup do not go together"),
        (("--run", "paper", "--survival", "x:dflash"), "--run and --survival do not go together"),
        (("--drafted", 4, "--positions", 4), "--drafted 4 makes 5 positions, not 4"),
        (("--speedup", 9), r"4 drafts at this cost give 0\.833 to 4\.17"),
        (("--survival", "paper:dflash"), "'paper' printed no survival curves"),
        (("--survival", "folder"), "names no arm"),
        (("--survival", "folder:ar"), "ar drafts nothing"),
        (("--batch", "8:1", "--target", "qwen3-8b"), "--batch 8:1"),
        (("--batch", "many", "--target", "qwen3-8b"), "'many' is no batch"),
        (("--t0", "-1", "--target", "qwen3-8b"), "no negative"),
        (("--t0", "paper"), "--t0 says nothing without --target"),
        (("--t0", "nan", "--target", "qwen3-8b"), "no negative"),
        (("--cost", "inf"), "--cost inf is no number"),
        (("--slope", "inf"), "--slope inf is no number"),
        (("--speedup", "inf"), "--speedup inf is no number"),
        (("--speedup", "1", "--drafted", "0"), "no drafted token says nothing of alpha"),
        (("--batch", "0"), "--batch"),
        (("--batch", "-3", "--target", "qwen3-8b"), "--batch -3"),
        (("--batch", "0:4", "--target", "qwen3-8b"), "--batch 0:4"),
        (("--cost", "0.1", "--target", "qwen3-8b"), "--cost says nothing beside --target"),
        (("--gpus", "2"), "--gpus says nothing without --target"),
        (("--run", "paper", "--t0", "1"), "--t0 says nothing beside --run"),
        (("--run", "paper", "--drafted", "7"), "--drafted says nothing beside --run"),
        (("--widths", "8:1,16:2"), "--widths says nothing without --survival"),
        (("--target", "qwen3-9b"), "did you mean 'qwen3-8b'"),
        (("--target", "qwen3-8b", "--hardware", "h10"), "did you mean 'h100'"),
        (("--target", "qwen3-8b", "--drafter", "blok"), "did you mean 'block'"),
        (("--run", "paper", "--target", "llama-3.1-8b"), "has no target 'llama-3.1-8b'"),
        (("--target", ""), "--target is empty"),
        (("--run", ""), "--run is empty"),
        (("--target", "qwen3-8b", "--t0", ""), "--t0 is empty"),
        (("--target", "qwen3-8b", "--gpus", 3), "--gpus 3 cannot share the 32 attention heads of qwen3-8b"),
        (("--run", "paper", "--gpus", 64), "--gpus 64 cannot share the 32 attention heads of Qwen3-8B"),
        (
            ("--target", "llama-3.1-70b", "--gpus", 64, "--drafter", "llama-3.1-8b"),
            "cannot share the 32 attention heads of llama-3.1-8b",
        ),
        (("--target", "qwen3-8b", "--drafter", "llama-3.1-8b"), "has 128,256 tokens, the target 151,936"),
        (("--speedup", 2, "--target", "qwen3-8b", "--batch", "1:8"), "of one batch"),
        (("--tree", 2, "--marginals", "0.5", "--target", "qwen3-8b", "--batch", "1:8"), "of one batch"),
        (("--speedup", 2, "--target", "qwen3-8b", "--batch", 618), r"batch 618 does not fit into memory \(617"),
    ],
)
def test_what_is_refused(args, said):
    with pytest.raises(UserError, match=said):
        command(*args)


@pytest.mark.parametrize("option", ["alpha", "speedup", "cost", "slope"])
@pytest.mark.parametrize("value", ["nan", "-0.1"])
def test_no_chance_or_time_is_negative_or_not_a_number(option, value):
    done = CliRunner().invoke(app, ["model", f"--{option}", value])
    assert done.exit_code != 0
    assert not isinstance(done.exception, ValueError | ZeroDivisionError | OverflowError)


def test_batches_are_powers_of_two_and_the_ends():
    assert batches("1:1024") == [2**k for k in range(11)]
    assert batches("3:20") == [3, 4, 8, 16, 20]
    assert batches("8") == [8]

"""The expansion: nothing lost, nothing measured twice, drift cancelled, and the whole paper in a moment."""

import resource
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.prompts.manifest import manifest
from harness.sweep import cells, plan, sweep
from harness.sweep.resolve import Inputs, resolve
from sglang_specbench.arms import ARMS
from sglang_specbench.errors import UserError
from sglang_specbench.machine import unsupplied
from sglang_specbench.models import Model
from tests.harness.made import drafter, model, sweep_text, toy

TRAINED = ("dflash", "dflash2", "domino", "dspark", "lilicorr", "lilicorr-conv")


def inputs(spec, device="cpu"):
    """Names resolved without any file."""
    here = {name: Model(source=name, folder=None, digest=f"hub:{name}") for name in spec.target}
    drafters = {
        (target, name): Model(source=name, folder=None, digest=f"hub:{name}")
        for target, entry in spec.target.items()
        for name in entry.drafters
    }
    names = {name for panel in spec.panel for name in panel.sets}
    return Inputs(
        device=device,
        dtype="float32",
        targets=here,
        drafters=drafters,
        renders=dict.fromkeys(here, "r"),
        manifests={name: manifest(name) for name in names},
        sets={},
        missing_sets={},
    )


def spec(repeats=1, targets=("a",), order="abba", **panel):
    lists = {"arms": ("ar", "dflash"), "sets": {"gsm8k": sweep.SetSpec()}, **panel}
    target = sweep.TargetSpec(path="org/x", drafters={name: f"org/{name}" for name in TRAINED})
    return sweep.Sweep(
        name="t",
        target=dict.fromkeys(targets, target),
        panel=(sweep.Panel(**lists),),
        repeats=repeats,
        order=order,
    )


def expand(**changes):
    made = spec(**changes)
    return plan.expand(made, inputs(made))


def arms(allocation):
    return [launch.arm for launch in allocation.launches]


def test_ar_opens_and_closes_and_odd_repeats_run_backwards():
    first, second = expand(repeats=2, arms=("ar", "dflash", "domino", "lilicorr")).allocations
    assert arms(first) == ["ar", "dflash", "domino", "lilicorr", "ar"]
    assert arms(second) == ["ar", "lilicorr", "domino", "dflash", "ar"]
    assert [launch.order for launch in second.launches] == [0, 1, 2, 3, 4]
    assert [launch.cells[0].replica for launch in second.launches] == [0, 0, 0, 0, 1]


def test_a_linear_drift_cancels_over_two_repeats():
    """Mean place of every arm over a forward and a backward allocation is the same."""
    made = expand(repeats=2, arms=("ar", "dflash", "domino", "lilicorr"))
    places = {
        name: [launch.order for a in made.allocations for launch in a.launches if launch.arm == name]
        for name in ("ar", "dflash", "domino", "lilicorr")
    }
    assert {sum(p) / len(p) for p in places.values()} == {2.0}


def test_a_fixed_order_stays():
    made = expand(repeats=2, order="fixed", arms=("ar", "dflash", "domino"))
    assert arms(made.allocations[0]) == arms(made.allocations[1])


def test_seeds_count_above_temperature_zero_only():
    made = expand(temperatures=(0.0, 1.0), seeds=(42, 43, 44))
    of_dflash = [c for c in made.cells if c.arm == "dflash"]
    assert Counter((c.temperature, c.seed) for c in of_dflash) == {(0, 42): 1, (1, 42): 1, (1, 43): 1, (1, 44): 1}
    assert [a.id for a in made.allocations] == ["a-s42-r0", "a-s43-r0", "a-s44-r0"]


def test_one_server_serves_both_temperatures_where_the_proposal_is_the_same():
    made = expand(temperatures=(0.0, 1.0), concurrency=(1, 4), arms=("ar", "dflash", "lilicorr"))
    assert [(x.arm, x.proposal, len(x.cells)) for x in made.launches] == [
        ("ar", "none", 4),
        ("dflash", "argmax", 4),
        ("lilicorr", "argmax", 2),
        ("lilicorr", "sampled", 2),
        ("ar", "none", 4),
    ]


@pytest.mark.parametrize(("twin", "base"), [("dspark-argmax", "dspark"), ("lilicorr-argmax", "lilicorr")])
def test_an_argmax_twin_is_measured_once_at_temperature_zero(twin, base):
    made = expand(temperatures=(0.0, 1.0), arms=(twin, base))
    assert Counter((c.arm, c.temperature) for c in made.cells) == {(base, 0): 1, (base, 1): 1, (twin, 1): 1}
    alone = expand(temperatures=(0.0,), arms=(twin,))
    assert [c.arm for c in alone.cells] == [twin]


@pytest.mark.parametrize("other", ["dflash2-argmax", "lilicorr-exact", "domino-full", "lilicorr-conv"])
def test_an_arm_on_another_server_is_never_dropped(other):
    made = expand(arms=(other, *TRAINED))
    assert Counter(c.arm for c in made.cells)[other] == 1


def test_tiers_limits_and_caps_reach_the_cells():
    sets = {"speed-throughput-1k": sweep.SetSpec(prompts=8, tiers=("low_entropy", "mixed")), "mini": sweep.SetSpec()}
    made = expand(arms=("dflash",), sets=sets)
    assert [(c.tier, c.prompts, c.max_new_tokens, c.ignore_eos) for c in made.cells] == [
        ("low_entropy", 8, 1024, True),
        ("mixed", 8, 1024, True),
        ("", 120, 128, False),
    ]


@settings(max_examples=40, deadline=None)
@given(
    arms=st.lists(st.sampled_from([n for n, a in ARMS.items() if not a.needs]), min_size=1, unique=True).map(tuple),
    temperatures=st.lists(st.sampled_from([0.0, 0.7, 1.0]), min_size=1, unique=True).map(tuple),
    seeds=st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True).map(tuple),
    concurrency=st.lists(st.integers(1, 32), min_size=1, max_size=3, unique=True).map(tuple),
    repeats=st.integers(1, 3),
)
def test_any_sweep_is_expanded_whole_once_and_the_same_way(arms, temperatures, seeds, concurrency, repeats):
    lists = {"arms": arms, "temperatures": temperatures, "seeds": seeds, "concurrency": concurrency}
    made = expand(repeats=repeats, **lists)
    assert made == expand(repeats=repeats, **lists)
    ids = [c.id for c in made.cells]
    assert len(set(ids)) == len(ids)
    draws = sum(len(seeds) if t else 1 for t in temperatures)
    for arm in arms:
        mine = [c for c in made.cells if c.arm == arm and not c.replica]
        measured = sum(arm in cells.distinct(arms, t) for t in temperatures for _ in (seeds if t else seeds[:1]))
        assert len(mine) == measured * len(concurrency) * repeats
        assert measured in (draws, draws - (0.0 in temperatures))
    for launch in made.launches:
        assert len({c.launch_key for c in launch.cells}) == 1
    for allocation in made.allocations:
        if "ar" in arms:
            assert allocation.launches[0].arm == allocation.launches[-1].arm == "ar"
            opening, closing = allocation.launches[0].cells, allocation.launches[-1].cells
            assert [c.label for c in opening] == [c.label.removesuffix(" closing") for c in closing]


def test_equal_cells_of_two_panels_are_one():
    made = spec()
    twice = sweep.Sweep(name="t", target=made.target, panel=(made.panel[0], made.panel[0]))
    assert plan.expand(twice, inputs(twice)).cells == plan.expand(made, inputs(made)).cells


def test_a_plan_survives_its_file(tmp_path):
    made = expand(temperatures=(0.0, 1.0), repeats=2)
    plan.write(made, tmp_path)
    assert plan.read(tmp_path) == made
    with pytest.raises(UserError, match=r"plan\.json: no such file"):
        plan.read(tmp_path / "nope")


def test_a_launch_builds_the_server_of_its_cells(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        sweep_text(toy(tmp_path), concurrency=[1, 4]).replace("[[panel]]", '[server]\nargs = ["--x"]\n[[panel]]')
    )
    _, made = plan.make(path)
    server = next(x for x in made.launches if x.arm == "dflash").server(port=1234)
    assert (server.target, server.draft) == (f"{tmp_path}/target", f"{tmp_path}/dflash")
    assert (server.port, server.seed, server.concurrency, server.extra) == (1234, 42, 4, ("--x",))
    assert server.argv[-1] == "--x"


def test_models_that_are_not_here_stop_a_run_and_not_a_plan(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(sweep_text(tmp_path).replace(f"{tmp_path}/target", "org/x").replace(f"{tmp_path}/dflash", "org/d"))
    _, made = plan.make(path)
    assert len(made.cells) == 3
    remedies = "no such folder either: correct the path, or get the model: hf download org/x"
    with pytest.raises(UserError, match=rf"s\.toml: target\.toy\.path: 'org/x' is not on this machine .{remedies}"):
        made.require_models()
    plan.write(made, tmp_path)
    assert plan.read(tmp_path) == made


def test_a_missing_model_that_two_targets_share_is_named_once_by_its_first_key():
    made = inputs(spec(targets=("a", "b")))
    twins = {name: Model(source="org/x", folder=None, digest="", where=f"target.{name}") for name in "ab"}
    assert [m.where for m in replace(made, targets=twins, drafters={}).missing_models] == ["target.a"]


def test_more_prompts_than_the_set_has_are_refused_with_its_size(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(sweep_text(toy(tmp_path)).replace("prompts = 4", "prompts = 81"))
    with pytest.raises(UserError, match=r"s\.toml: panel\[0\]: sets\.mt-bench: prompts: 81, but the set has 80"):
        plan.make(path)


def test_an_absent_set_is_planned_and_named(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(sweep_text(toy(tmp_path)).replace("sets.mt-bench", "sets.aime25"))
    _, made = plan.make(path)
    assert "specbench data fetch aime25 --accept-licence" in made.missing_sets["aime25"]
    assert {c.prompt_version for c in made.cells} == {"v1:missing"}


def test_an_arm_that_needs_cuda_is_refused_on_a_cpu(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        sweep_text(toy(tmp_path), arms=("ngram",)).replace("[[panel]]", '[server]\ndevice = "cpu"\n[[panel]]')
    )
    with pytest.raises(UserError, match="arm 'ngram' runs on cuda only"):
        resolve(sweep.load(path))


def test_the_whole_paper_plans_in_under_two_seconds():
    """Processor time of the command from its start: two targets, every arm, nine sets, three seeds, both proposals."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "from sglang_specbench.cli import main; main()"
    for name in ("paper_main", "paper_concurrency"):
        subprocess.run([sys.executable, "-c", code, "plan", name], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.0


def test_an_answer_that_does_not_fit_the_context_is_refused(tmp_path):
    source = sweep.shipped()["demo"].read_text(encoding="utf-8")
    path = tmp_path / "small.toml"
    path.write_text(source.replace("context_length = 1024", "context_length = 64"), encoding="utf-8")
    with pytest.raises(UserError, match=r"small\.toml: server\.context_length: 64 tokens do not hold an answer of 64"):
        plan.make(path)


def notes(*panels):
    """Of a sweep with these panels; every drafter is used unless they say otherwise."""
    made = spec()
    whole = {"arms": ("ar", *TRAINED), "sets": {"gsm8k": sweep.SetSpec()}}
    several = sweep.Sweep(name="t", target=made.target, panel=tuple(sweep.Panel(**{**whole, **p}) for p in panels))
    return plan.expand(several, inputs(several)).notes


@pytest.mark.parametrize(
    ("panel", "alone"),
    [
        ({"arms": ("lilicorr-exact", "dspark")}, ""),  # AR of the other panel has the same prompts
        ({"arms": ("ar", "dspark"), "temperatures": (1.0,)}, ""),
        ({"arms": ("dspark",), "temperatures": (0.0, 1.0)}, "dspark"),
        ({"arms": ("dspark", "dflash"), "concurrency": (4,)}, "dspark, dflash"),
        ({"arms": ("dspark",), "seeds": (43,)}, "dspark"),
        ({"arms": ("dspark",), "sets": {"mbpp": sweep.SetSpec()}}, "dspark"),
    ],
)
def test_arms_that_no_ar_cell_stands_beside_are_noted(panel, alone):
    assert notes({}) == ()
    found = [note for note in notes({}, panel) if f'no arm "ar" beside {alone}: speedups will be missing' in note]
    assert len(found) == (alone != "")
    assert len(notes({}, panel)) == len(found)


def test_a_drafter_that_no_arm_uses_is_noted():
    (note,) = notes({"arms": ("ar", *TRAINED[:-1])})
    assert f"target.a.drafters.{TRAINED[-1]}: no arm of a panel uses it" in note


@pytest.mark.parametrize("name", sorted(set(sweep.shipped()) - {"paper_decode_rule"}))
def test_shipped_sweeps_have_no_notes(name):
    """The one left out measures acceptance only, without AR."""
    assert plan.make(name)[1].notes == ()


def test_a_concurrency_that_the_prompts_cannot_reach_is_noted_once():
    few = {"sets": {"gsm8k": sweep.SetSpec(prompts=6)}, "concurrency": (1, 6, 32)}
    (note,) = notes({"arms": ("ar", *TRAINED), **few})
    assert "concurrency 32 is out of reach of the 6 prompts of gsm8k: no block times there" in note


def test_the_width_is_the_checkpoints(tmp_path):
    """Arms of unlike width in one plan, each launched, shown and stored with its own."""
    toy(tmp_path, ("dflash", "dspark"))
    model(tmp_path / "dspark", drafter("dspark", block_size=7))
    (tmp_path / "s.toml").write_text(sweep_text(tmp_path, ("ar", "dflash", "dspark"), ("dflash", "dspark")))
    _, made = plan.make(tmp_path / "s.toml")
    widths = {launch.arm: launch.window for launch in made.launches}
    assert (widths["dflash"], widths["dspark"]) == (16, 8)
    argv = next(launch for launch in made.launches if launch.arm == "dspark").server(1).argv
    assert argv[argv.index("--speculative-dspark-block-size") + 1] == "7"
    plan.write(made, tmp_path)
    assert {launch.arm: launch.window for launch in plan.read(tmp_path).launches} == widths


@pytest.mark.parametrize("name", [a.name for a in ARMS.values() if unsupplied(a)])
def test_an_arm_whose_needs_nothing_supplies_is_refused_on_any_device(tmp_path, name):
    """On a GPU it would be refused after minutes of loading, or served as something else."""
    assert name in ("dspark-scheduled", "standalone")
    checkpoint = ARMS[name].checkpoint
    toy(tmp_path, (checkpoint,))
    text = sweep_text(tmp_path, ("ar", name), (checkpoint,))
    for device in ("cuda", "cpu"):
        (tmp_path / "s.toml").write_text(f'{text}[server]\ndevice = "{device}"\n')
        with pytest.raises(UserError, match=f"panel.arms: '{name}' is not wired: needs a .*leave it out"):
            plan.make(tmp_path / "s.toml")

"""Joint training: resumes bit for bit after a SIGKILL, arms and ranks do not disturb each other, exports are exact."""

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from safetensors.torch import load_file  # noqa: E402

from drafters.checkpoints.export import export_run  # noqa: E402
from drafters.commands.export import export  # noqa: E402
from drafters.commands.train import _terms, train  # noqa: E402
from drafters.corpus.samples import read_samples  # noqa: E402
from drafters.model.registry import DRAFTERS  # noqa: E402
from drafters.reference.target import Target  # noqa: E402
from drafters.training import checkpoint as training_state  # noqa: E402
from drafters.training.contract import Contract  # noqa: E402
from drafters.training.loop import Run, Training  # noqa: E402
from sglang_specbench.digest import weights_digest  # noqa: E402
from sglang_specbench.errors import UserError  # noqa: E402
from tests.drafters import tiny  # noqa: E402

MAIN = "from sglang_specbench.cli import main; main()"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Folder with target, corpus, recipes and contract."""
    folder = tmp_path_factory.mktemp("world")
    tiny.write_target(folder / "target")
    tiny.write_corpus(folder / "corpus.jsonl")
    tiny.write_recipes(folder / "recipes")
    tiny.write_contract(folder / "contract.toml")
    return folder


def job(world, folder, **changes):
    contract = tiny.write_contract(folder.with_suffix(".toml"), **changes)
    samples = read_samples(world / "corpus.jsonl", None, 64)
    return Run(
        folder=folder,
        contract=Contract.load(contract),
        target=Target.load(world / "target"),
        target_digest=weights_digest(world / "target"),
        samples=samples,
        held_out=samples[:5],
        mask_token_id=tiny.MASK,
        recipes=world / "recipes",
    )


def weights(folder, arm):
    return training_state.load_arm(training_state.latest(folder), arm)["drafter"]


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def straight(world):
    """A run without interruption, all arms."""
    folder = world / "straight"
    Training(job(world, folder)).run()
    return folder


def command(world, folder):
    options = ("target", "corpus.jsonl", "contract.toml", "recipes")
    named = [f"--{name.split('.')[0]}={world / name}" for name in options]
    held_out = f"--held-out={world / 'corpus.jsonl'}"
    return [sys.executable, "-c", MAIN, "train", str(folder), *named, held_out, f"--mask-token-id={tiny.MASK}"]


@pytest.mark.slow
def test_a_killed_run_ends_with_the_weights_of_an_uninterrupted_one(world, straight):
    folder = world / "killed"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command(world, folder), env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not training_state.states(folder) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed_at = int(training_state.latest(folder).name.removeprefix("step-"))
    assert killed_at < 6, "it was killed too late to show anything"
    subprocess.run(command(world, folder), env=environment, check=True, stdout=subprocess.DEVNULL)
    for arm in DRAFTERS:
        assert same(weights(folder, arm), weights(straight, arm)), arm
    steps = [row["step"] for row in rows(folder) if row["kind"] == "held_out" and row["arm"] == "dflash"]
    assert steps == sorted(set(steps))


@pytest.mark.slow
def test_two_ranks_take_the_step_of_one(world, straight):
    """Norms are summed over ranks, so the two differ by the order of float additions only."""
    folder = world / "ranks"
    contract = tiny.write_contract(world / "ranks.toml", micro_batch=2)
    arguments = [a for a in command(world, folder) if not a.startswith("--contract")][3:]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
    ranks = [*torchrun, sys.executable, "-c", MAIN, *arguments, f"--contract={contract}"]
    subprocess.run(ranks, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True, stdout=subprocess.DEVNULL)
    for arm in DRAFTERS:
        one, two = weights(straight, arm), weights(folder, arm)
        worst = max((one[name] - two[name]).abs().max() for name in one)
        assert worst < 1e-2, (arm, worst)  # six steps of learning rate 1e-2 move a weight by up to 6e-2


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_an_arm_trains_the_same_alone_as_beside_the_others(world, straight):
    folder = world / "alone"
    Training(job(world, folder, arms=["domino"])).run()
    assert same(weights(folder, "domino"), weights(straight, "domino"))


def test_training_moves_every_parameter_and_reports_every_arm(world, straight):
    fresh = {t.arm: t.drafter.state_dict() for t in Training(job(world, world / "fresh")).trainees}
    for arm in DRAFTERS:
        trained = weights(straight, arm)
        still = [name for name, value in trained.items() if torch.equal(value, fresh[arm][name])]
        assert not still, (arm, still)
    last = [row for row in rows(straight) if row["kind"] == "held_out"][-len(DRAFTERS) :]
    assert {row["arm"] for row in last} == set(DRAFTERS)
    assert all(row["tau"] >= 1 and row["loss"] > 0 and row["blocks"] > 0 for row in last)


def test_micro_batches_of_a_step_see_all_of_its_samples(world):
    whole = Training(job(world, world / "whole", arms=["dflash"]))
    split = Training(job(world, world / "split", arms=["dflash"], micro_batch=2))
    (one, tokens), (two, same_tokens) = whole.update(), split.update()
    assert tokens == same_tokens
    assert one["dflash"]["blocks"] == two["dflash"]["blocks"] > 0
    assert one["dflash"]["loss"] == pytest.approx(two["dflash"]["loss"], rel=1e-5)


def test_another_contract_or_corpus_is_refused(world, straight):
    with pytest.raises(UserError, match="another contract"):
        Training(job(world, straight, seed=8))


def test_another_recipe_is_refused(world, straight, tmp_path):
    recipes = shutil.copytree(world / "recipes", tmp_path / "recipes")
    text = (recipes / "dspark.toml").read_text()
    (recipes / "dspark.toml").write_text(text.replace("markov_rank = 4", "markov_rank = 8"))
    with pytest.raises(UserError, match="dspark has another"):
        Training(dataclasses.replace(job(world, straight), recipes=recipes))


def test_a_corpus_smaller_than_a_batch_is_refused(world):
    with pytest.raises(UserError, match="13 samples, a batch 64"):
        Training(job(world, world / "small", batch=64))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": Path("nosuch.jsonl")}, r"train: --corpus nosuch\.jsonl: no such file"),
        ({"held_out": Path("nosuch.jsonl")}, r"train: --held-out nosuch\.jsonl: no such file"),
        ({"target": "nosuch"}, "train: --target: 'nosuch': no folder nosuch"),
        ({"arm": ["dominno"]}, "train: --arm: unknown drafter 'dominno' .did you mean 'domino'"),
        ({"recipes": Path("nosuch")}, r"nosuch/dflash\.toml: no such file"),
        ({"contract": "batch of 64"}, "13 samples, a batch 64"),
        ({"target": "bare"}, "bare: no tokenizer there"),
    ],
)
def test_what_is_cheap_to_check_is_checked_before_the_weights_are_loaded(world, monkeypatch, changes, message):
    monkeypatch.setattr(Target, "load", lambda *_: pytest.fail("the weights were loaded first"))
    if changes.get("target") == "bare":
        changes = {"target": str(world / "bare")}
        (world / "bare").mkdir()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(world / "target" / name, world / "bare")
    if "contract" in changes:
        changes = {"contract": str(tiny.write_contract(world / "large.toml", batch=64, micro_batch=4))}
    good = {"contract": str(world / "contract.toml"), "recipes": world / "recipes"}
    files = {"target": str(world / "target"), "corpus": world / "corpus.jsonl"}
    with pytest.raises(UserError, match=message):
        train(world / "refused", mask_token_id=tiny.MASK, **{**files, **good, **changes})
    assert not (world / "refused").exists()


def test_an_arm_named_twice_is_trained_once(world):
    assert _terms(str(world / "contract.toml"), ["domino", "domino"]).arms == ("domino",)


SGLANG = json.loads(Path(__file__).with_name("sglang_tensors.json").read_text())


@pytest.mark.parametrize("arm", DRAFTERS)
def test_an_export_holds_exactly_the_tensors_that_sglang_loads_in_bf16(arm, straight, tmp_path):
    """The list was written by hand from SGLang 0.5.23's loaders and shares no code with the export."""
    export_run(straight, arm, tmp_path / arm)
    tensors = load_file(tmp_path / arm / "model.safetensors")
    layer = SGLANG["layer"] + (SGLANG["conv"] if arm in ("dflash2", "lilicorr-conv") else [])
    head = SGLANG.get(arm.removesuffix("-conv").removesuffix("-noconv"), [])
    assert tensors.keys() == {f"layers.{i}.{name}" for i in (0, 1) for name in layer} | {*SGLANG["shared"], *head}
    assert {value.dtype for value in tensors.values()} == {torch.bfloat16}
    trained = weights(straight, arm)
    assert all(torch.equal(value, trained[name].to(torch.bfloat16)) for name, value in tensors.items())


def test_an_unknown_arm_is_named_with_those_there_are(straight, tmp_path):
    with pytest.raises(UserError, match="it holds dflash, dflash2, dflash2-noconv, domino"):
        export_run(straight, "eagle", tmp_path)


def test_a_training_run_without_an_arm_names_those_there_are(straight, tmp_path):
    with pytest.raises(UserError, match=r"is a training run \(name the arm: --arm dflash or --arm dflash2 or "):
        export(str(straight), tmp_path / "out")
    (tmp_path / "one-by-one").mkdir()
    shutil.copytree(straight, tmp_path / "one-by-one" / "domino")
    with pytest.raises(UserError, match=r"one-by-one is a training run \(name the arm: --arm domino\)"):
        export(str(tmp_path / "one-by-one"), tmp_path / "out")


def test_what_will_be_done_and_how_long_it_takes_is_said_at_the_start(world, tmp_path, capsys):
    Training(job(world, tmp_path / "run")).run()
    said = capsys.readouterr().err
    assert "training: 6 of 6 steps to do" in said
    assert len(re.findall(r"the first step took [\d.]+ s: at most about 0:00:\d\d left", said)) == 1


def test_every_arm_starts_from_a_given_backbone(world, straight, tmp_path):
    export_run(straight, "dflash", tmp_path / "start")
    training = Training(dataclasses.replace(job(world, tmp_path / "run"), backbone=tmp_path / "start"))
    start = load_file(tmp_path / "start" / "model.safetensors")
    for trainee in training.trainees:
        own = trainee.drafter.state_dict()
        assert all(torch.equal(own[name], value.float()) for name, value in start.items())


def test_a_frozen_backbone_stays_and_its_head_moves(world, straight, tmp_path):
    export_run(straight, "dflash", tmp_path / "start")
    run = dataclasses.replace(
        job(world, tmp_path / "frozen", arms=["lilicorr"], frozen_backbone=True), backbone=tmp_path / "start"
    )
    training = Training(run)
    before = {name: weight.clone() for name, weight in training.trainees[0].drafter.state_dict().items()}
    training.run()
    after, backbone = weights(run.folder, "lilicorr"), training.trainees[0].drafter.backbone.state_dict()
    moved = {name for name in after if not torch.equal(after[name], before[name])}
    assert moved
    assert moved.isdisjoint(backbone)
    assert len(training.trainees[0].optimiser.state_dict()["state"]) == len(after) - len(backbone)


@pytest.mark.parametrize(
    ("arms", "given", "message"),
    [
        (["lilicorr"], False, "frozen_backbone: no --backbone.*name a trained checkpoint"),
        (["dflash"], True, "dflash has no head to train beside a frozen backbone.*leave it out of arms"),
    ],
)
def test_a_frozen_backbone_that_teaches_nothing_is_refused(world, straight, tmp_path, arms, given, message):
    export_run(straight, "dflash", tmp_path / "start")
    run = job(world, tmp_path / "frozen", arms=arms, frozen_backbone=True)
    with pytest.raises(UserError, match=message):
        Training(dataclasses.replace(run, backbone=tmp_path / "start" if given else None))

"""What a run refuses, stops at, keeps and says: numbers that are not finite, other weights, branches, acceptance."""

import dataclasses
import json

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from safetensors.torch import load_file, save_file  # noqa: E402

from drafters.checkpoints.export import export_run  # noqa: E402
from drafters.commands.train import train  # noqa: E402
from drafters.corpus.samples import read_samples  # noqa: E402
from drafters.model.drafter import load  # noqa: E402
from drafters.reference.decode import Rule, decode  # noqa: E402
from drafters.reference.target import Target  # noqa: E402
from drafters.training import checkpoint as training_state  # noqa: E402
from drafters.training.acceptance import prompts_of  # noqa: E402
from drafters.training.contract import Contract  # noqa: E402
from drafters.training.loop import Run, Training, in_sequence  # noqa: E402
from sglang_specbench.digest import weights_digest  # noqa: E402
from sglang_specbench.errors import UserError  # noqa: E402
from tests.drafters import tiny  # noqa: E402

SCALED = "lilicorr_embedding_scale = 16.0\n"
KEYS = {
    "schema", "arm", "contract", "recipe", "steps", "seed", "corpus_digest", "commit", "target_digest",
    "head_parameters",
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    tiny.write_target(folder / "target")
    tiny.write_corpus(folder / "corpus.jsonl")
    tiny.write_recipes(folder / "recipes")
    path = folder / "recipes" / "lilicorr.toml"
    path.write_text(path.read_text().replace("[model]\n", f"[model]\n{SCALED}"))
    return folder


def job(world, folder, **changes):
    samples = read_samples(world / "corpus.jsonl", None, 64)
    return Run(
        folder=folder,
        contract=Contract.load(tiny.write_contract(folder.with_suffix(".toml"), **{"arms": ["dflash"], **changes})),
        target=Target.load(world / "target"),
        target_digest=weights_digest(world / "target"),
        samples=samples,
        held_out=samples[:5],
        mask_token_id=tiny.MASK,
        recipes=world / "recipes",
    )


@pytest.fixture(scope="module")
def lilicorr(world):
    """LiLiCorr trained with its candidate embeddings scaled by 16."""
    folder = world / "lilicorr"
    Training(job(world, folder, arms=["lilicorr"], evaluate_every=3)).run()
    return folder


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_training_stops_at_the_first_loss_that_is_not_finite_and_keeps_the_last_finite_state(world):
    folder = world / "nan"
    with pytest.raises(UserError, match=r"stopped in step 2: \w+ of dflash is (nan|inf).*state after step 1 is kept"):
        Training(job(world, folder, learning_rate=1e30, checkpoint_every=1)).run()
    kept = training_state.load_arm(training_state.latest(folder), "dflash")["drafter"]
    assert all(value.isfinite().all() for value in kept.values())


def test_weights_that_are_not_finite_are_not_saved(world):
    training = Training(job(world, world / "inf"))
    next(iter(training.trainees[0].weights)).data[0] = float("inf")
    with pytest.raises(UserError, match=r"weight backbone.* of dflash is not finite.*no state was kept"):
        training._save()
    assert not training_state.states(world / "inf")


@pytest.mark.parametrize(("key", "value"), [("learning_rate", "nan"), ("learning_rate", "0.0"), ("clip", "inf")])
def test_a_contract_that_cannot_train_is_refused(world, tmp_path, key, value):
    path = tiny.write_contract(tmp_path / "c.toml")
    path.write_text("".join(f"{key} = {value}\n" if line.startswith(key) else line + "\n"
                            for line in path.read_text().splitlines()))  # fmt: skip
    with pytest.raises(UserError, match=f"c.toml.*{key}"):
        Contract.load(path)


def test_a_run_does_not_resume_beside_another_target(world, lilicorr):
    other = dataclasses.replace(job(world, lilicorr, arms=["lilicorr"], evaluate_every=3), target_digest="another")
    with pytest.raises(UserError, match="trained with another target"):
        Training(other)


@pytest.mark.parametrize("prefix", ["model.", "module."])
def test_a_backbone_whose_names_do_not_fit_is_refused(world, lilicorr, tmp_path, prefix):
    export_run(lilicorr, "lilicorr", tmp_path / "start")
    path = tmp_path / "start" / "model.safetensors"
    save_file({prefix + name: value for name, value in load_file(path).items()}, path)
    with pytest.raises(UserError, match=f"no tensor 'fc.weight' .it has '{prefix}"):
        Training(dataclasses.replace(job(world, tmp_path / "run"), backbone=tmp_path / "start"))


def test_a_backbone_of_another_size_is_refused(world, lilicorr, tmp_path):
    export_run(lilicorr, "lilicorr", tmp_path / "start")
    path = tmp_path / "start" / "model.safetensors"
    save_file({**load_file(path), "fc.weight": torch.ones(2, 2)}, path)
    with pytest.raises(UserError, match=r"fc.weight is \[2, 2\]"):
        Training(dataclasses.replace(job(world, tmp_path / "run"), backbone=tmp_path / "start"))


def test_the_log_shows_what_decoding_a_held_out_prompt_gives(world, lilicorr):
    """The same number from the exported weights, which differ by their rounding to bf16 alone."""
    last = [row for row in metrics(lilicorr) if row["kind"] == "held_out"][-1]
    run = job(world, world / "again", arms=["lilicorr"])
    prompt = prompts_of(run.held_out, 1)[0]
    assert prompt == run.held_out[0].ids_S[:5].tolist()
    drafter = Training(dataclasses.replace(run, folder=lilicorr)).trainees[0].drafter.eval()
    done = decode(run.target, drafter, prompt, 12, Rule(), eos_ids=(2,))
    assert last["decoded_tau"] == pytest.approx(1 + sum(done.accepted) / len(done.accepted), abs=1e-5)
    assert last["decode_s"] > 0


def test_the_best_weights_by_decoding_are_kept_and_exported(world, lilicorr, tmp_path):
    rows = [row for row in metrics(lilicorr) if row["kind"] == "held_out"]
    best = max(rows, key=lambda row: row["decoded_tau"])  # the first of equals
    assert training_state.load_best(lilicorr, "lilicorr").step == best["step"]
    export_run(lilicorr, "lilicorr", tmp_path / "best", best=True)
    assert json.loads((tmp_path / "best" / "provenance.json").read_text())["steps"] == best["step"]


def test_training_ends_early_when_no_arm_decodes_better(world):
    training = Training(job(world, world / "early", learning_rate=1e-12, evaluate_every=1, patience=2))
    training.run()
    assert training.step == 3 < training.steps  # best at step 1, two evaluations without a better one
    assert training_state.latest(world / "early").name == "step-0000003"


def test_sglang_computes_the_function_that_was_trained_without_knowing_of_the_scale(world, lilicorr, tmp_path):
    export_run(lilicorr, "lilicorr", tmp_path / "served")
    config = json.loads((tmp_path / "served" / "config.json").read_text())
    assert "lilicorr_embedding_scale" not in config["dflash_config"]
    state = training_state.load_arm(training_state.latest(lilicorr), "lilicorr")
    assert state["config"]["dflash_config"]["lilicorr_embedding_scale"] == 16
    trained = load(state["config"], {k: v.to(torch.bfloat16) for k, v in state["drafter"].items()})
    served = load(config, load_file(tmp_path / "served" / "model.safetensors"))
    generator = torch.Generator().manual_seed(1)
    inputs = [
        torch.randn(*shape, generator=generator) for shape in ((3, 15, 16, 16), (3, 15, 16), (3, 15, 16), (3, 16))
    ]
    inputs[1] = inputs[1].log_softmax(-1).sort(descending=True).values
    one, two = (d.head.lilicorr(*inputs, torch.ones(3, dtype=torch.bool)) for d in (trained, served))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))  # a power of two: exact


def test_every_heads_branches_are_measured_before_training(world, lilicorr, capsys):
    first = metrics(lilicorr)[0]
    assert (first["step"], first["kind"]) == (0, "branches")
    plain = job(world, world / "plain", arms=["lilicorr", "dspark", "dflash2", "domino", "dflash"])
    recipes = world / "recipes-plain"
    tiny.write_recipes(recipes)
    training = Training(dataclasses.replace(plain, recipes=recipes))
    scales = {}

    class Reporter:
        def report(self, _step, arm, _kind, values):
            scales[arm] = values

    training._say_branches(Reporter())
    assert scales["lilicorr"]["hidden"] > 0
    assert first["token"] == pytest.approx(16 * scales["lilicorr"]["token"], abs=1e-5)  # as rounded
    assert scales["dflash"] == {}
    assert all(scales[arm] for arm in ("dspark", "dflash2", "domino"))
    assert "lilicorr: rms of the head's branches at the start: token" in capsys.readouterr().err


def test_an_export_says_where_it_comes_from(world, lilicorr, tmp_path):
    export_run(lilicorr, "lilicorr", tmp_path / "one")
    said = json.loads((tmp_path / "one" / "provenance.json").read_text())
    assert said.keys() == KEYS
    tensors = load_file(tmp_path / "one" / "model.safetensors")
    assert said["head_parameters"] == sum(v.numel() for k, v in tensors.items() if k.startswith("lilicorr."))
    assert (said["schema"], said["arm"], said["steps"], said["seed"]) == (1, "lilicorr", 6, 7)
    assert said["contract"]["learning_rate"] == 1e-2
    assert said["recipe"]["model"]["lilicorr_embedding_scale"] == 16
    assert said["recipe"]["loss"]["gamma"] == 0.25
    assert said["target_digest"] == weights_digest(world / "target")
    digest = weights_digest(tmp_path / "one")
    (tmp_path / "one" / "provenance.json").unlink()
    assert weights_digest(tmp_path / "one") == digest


def test_arms_trained_one_after_another_have_the_weights_of_those_trained_together(world, tmp_path):
    both, each = (job(world, world / name, arms=["dflash", "dspark"]) for name in ("both", "each"))
    Training(both).run()
    in_sequence(each)
    for arm in ("dflash", "dspark"):
        for run, name in ((both, "both"), (each, "each")):
            export_run(run.folder, arm, tmp_path / name / arm)
        assert weights_digest(tmp_path / "both" / arm) == weights_digest(tmp_path / "each" / arm)


def command(world, **changes):
    files = {"target": str(world / "target"), "corpus": world / "corpus.jsonl", "recipes": world / "recipes"}
    train(world / "asked", mask_token_id=tiny.MASK, **{**files, **changes})


def test_a_dry_run_says_memory_disk_steps_and_hours_and_loads_nothing(world, capsys, monkeypatch):
    drafter = Training(job(world, world / "count")).trainees[0].drafter
    monkeypatch.setattr(Target, "load", lambda *_: pytest.fail("the weights were loaded"))
    contract = str(tiny.write_contract(world / "dry.toml"))
    command(world, contract=contract, dry_run=True)
    said = capsys.readouterr()
    assert all(word in said.out for word in ("memory of each rank", "disk", "steps: 6 of 4", "hours"))
    assert "corpus: 13 samples" in said.err
    count = sum(p.numel() for p in drafter.parameters())
    assert f"dflash: {count / 1e6:,.1f} M" in said.out
    assert not (world / "asked").exists()


def test_uneven_ranks_are_refused_before_anything_is_loaded(world, monkeypatch):
    monkeypatch.setattr(Target, "load", lambda *_: pytest.fail("the weights were loaded"))
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(UserError, match="batch 4 is no multiple of 3 ranks"):
        command(world, contract=str(tiny.write_contract(world / "three.toml", micro_batch=1)))

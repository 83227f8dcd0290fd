"""Weights do not depend on ranks, rounds or where a run was resumed: gloo ranks on one machine, every arm, 20 steps."""

import dataclasses

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

from drafters.corpus.samples import read_samples  # noqa: E402
from drafters.model.registry import DRAFTERS  # noqa: E402
from drafters.reference.target import Target  # noqa: E402
from drafters.training import checkpoint as training_state  # noqa: E402
from drafters.training.contract import Contract  # noqa: E402
from drafters.training.loop import Run, Training  # noqa: E402
from sglang_specbench.errors import UserError  # noqa: E402
from tests.drafters import tiny  # noqa: E402

STEPS = 20
TWO = ("dflash", "lilicorr")  # where two cores carry three ranks; LiLiCorr has two counts to normalise by


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    tiny.write_target(folder / "target")
    tiny.write_corpus(folder / "corpus.jsonl", 12)
    tiny.write_recipes(folder / "recipes")
    return folder


def job(world, name, micro_batch, arms=DRAFTERS, **changes):
    terms = {"batch": 12, "micro_batch": micro_batch, "epochs": STEPS, "checkpoint_every": 10, "anchors": 2, **changes}
    return Run(
        folder=world / name,
        contract=Contract(**{**tiny.CONTRACT, **terms, "arms": arms}),
        target=Target.load(world / "target", torch.float64),
        target_digest="t",
        samples=read_samples(world / "corpus.jsonl", None, 64),
        held_out=[],
        mask_token_id=tiny.MASK,
        recipes=world / "recipes",
    )


def one_rank(rank, world, name, micro_batch, ranks, until, arms):
    """In float64, where additions round by 1e-16: AdamW makes a whole step of a gradient that is only rounding."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    if ranks > 1:
        store = f"file://{world / name}.store-{until}"
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks)
    training = Training(job(world, name, micro_batch, arms))
    if until < STEPS:  # killed: only what was saved counts
        while training.step < until:
            training.update()
        training._save()
    else:
        training.run()
    if ranks > 1:
        dist.destroy_process_group()


def train(world, name, micro_batch, ranks, until=STEPS, arms=DRAFTERS):
    mp.start_processes(one_rank, (world, name, micro_batch, ranks, until, arms), nprocs=ranks, start_method="spawn")
    return {arm: training_state.load_arm(training_state.latest(world / name), arm)["drafter"] for arm in arms}


@pytest.fixture(scope="module")
def alone(world):
    """One rank, one round."""
    return train(world, "alone", 12, 1)


def worst(one, two):
    return {arm: float(max((one[arm][name] - two[arm][name]).abs().max() for name in one[arm])) for arm in one}


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "micro_batch", "arms"), [(2, 3, DRAFTERS), (3, 2, TWO)])
def test_ranks_and_rounds_leave_no_trace_in_the_weights(world, alone, ranks, micro_batch, arms):
    split = train(world, f"split-{ranks}-{micro_batch}", micro_batch, ranks, arms=arms)
    apart = worst({arm: alone[arm] for arm in arms}, split)
    assert max(apart.values()) < 1e-6, apart


@pytest.mark.slow
def test_a_run_resumes_on_another_number_of_ranks(world, alone):
    train(world, "moved", 4, 3, until=10, arms=TWO)
    moved = train(world, "moved", 3, 2, arms=TWO)
    assert max(worst({arm: alone[arm] for arm in TWO}, moved).values()) < 1e-6


def test_ranks_that_would_get_unequal_shares_are_refused_with_the_numbers_that_fit(world):
    contract = Contract.load(tiny.write_contract(world / "uneven.toml", batch=4, micro_batch=1))
    for ranks in (1, 2, 4):
        contract.require_even(ranks)
    with pytest.raises(UserError, match=r"batch 4 is no multiple of 3 ranks x micro_batch 1 .write batch 3 or 6"):
        contract.require_even(3)
    with pytest.raises(UserError, match=r"write batch 4, or start 1 ranks"):
        dataclasses.replace(contract, batch=2, micro_batch=2).require_even(2)

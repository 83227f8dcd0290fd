"""Joint training: every arm of a contract side by side, on the same batches, from one pass of the target.

Knows the loop: batch, update each arm, report, evaluate, keep a state; where it stops, it resumes with the same weights
bit for bit (on a CPU). An arm's update is `trainee`'s, its formula its own ``loss.py``'s, the files `training_state`'s.
Runs alone or under ``torchrun``: ranks share each step's samples.
"""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import load_file

from drafters.corpus.samples import Sample
from drafters.model.blocks import TrainingBatch
from drafters.model.config import DrafterConfig
from drafters.model.drafter import build
from drafters.model.registry import load_recipe
from drafters.reference.target import Target
from drafters.training import checkpoint as training_state
from drafters.training.anchors import mix
from drafters.training.collate import Collator
from drafters.training.contract import Contract
from drafters.training.progress import Reporter
from drafters.training.sample_order import Order
from drafters.training.trainee import Trainee, world
from sglang_specbench.errors import UserError

REPORT_EVERY = 20  # steps


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a training run is made of.

    ``recipes`` holds an ``ARM.toml`` for each arm (default: the recipes of the paper's scale); ``backbone`` is a
    checkpoint folder whose backbone every arm starts from (default: drawn anew).
    """

    folder: Path
    contract: Contract
    target: Target
    samples: list[Sample]
    held_out: list[Sample]
    mask_token_id: int
    recipes: Path | None = None
    backbone: Path | None = None

    def identity(self) -> dict[str, str]:
        """What a resumed run must share with the one it continues."""
        tokens = hashlib.sha256(b"".join(s.ids_S.numpy().tobytes() for s in self.samples)).hexdigest()
        return {"contract": self.contract.digest(), "corpus": tokens[:16]}


class Training:
    """A run in progress on this rank.

    Raises `UserError` when the corpus is smaller than a batch, the arms read different target layers, or the run's
    state belongs to another contract or corpus.
    """

    def __init__(self, run: Run) -> None:
        self.job, contract = run, run.contract
        self.steps = contract.steps(len(run.samples))
        self.order = Order([len(s.ids_S) for s in run.samples], contract.batch, contract.seed)
        self.trainees = [trainee(run, arm) for arm in contract.arms]
        self.collator = Collator(run.samples, run.target, self._layer_ids(), contract.anchors, contract.seed)
        self.held_out = self._held_out()
        self.identity = run.identity()
        self.step = self._resume()

    def run(self) -> None:
        """Every step that is left; the last leaves a state."""
        contract = self.job.contract
        with Reporter(self.job.folder, self.step, self.steps, silent=rank() > 0) as reporter:
            while self.step < self.steps:
                started = time.perf_counter()
                values, tokens = self.update()
                pace = tokens * world() / (time.perf_counter() - started)
                reporter.advance(self.step, {arm: v["loss"] for arm, v in values.items()})
                last = self.step == self.steps
                if self.step % REPORT_EVERY == 0:
                    for arm, v in values.items():
                        reporter.report(self.step, arm, "train", {**v, "tokens_per_s": pace})
                if self.held_out and (last or self.step % contract.evaluate_every == 0):
                    for t in self.trainees:
                        reporter.report(self.step, t.arm, "held_out", t.evaluate(self.held_out))
                if rank() == 0 and (last or self.step % contract.checkpoint_every == 0):
                    states = {t.arm: t.state_dict() for t in self.trainees}
                    training_state.save(self.job.folder, self.step, states, self.identity)

    def update(self) -> tuple[dict[str, dict[str, float]], int]:
        """One optimiser step of every arm; metrics by arm, and the tokens of this rank's samples."""
        contract, step = self.job.contract, self.step
        torch.manual_seed(mix(contract.seed, step, rank()))  # a head with dropout resumes exactly, too
        indices = self.order.indices(step, rank(), world())
        rounds = [indices[i : i + contract.micro_batch] for i in range(0, len(indices), contract.micro_batch)]
        batches = [self.collator.batch(chunk, step, step / self.steps) for chunk in rounds]
        rate = contract.rate(step, self.steps)
        values = {t.arm: t.update(batches, rate) for t in self.trainees}
        self.step += 1
        return values, sum(self.order.lengths[i] for i in indices)

    def _layer_ids(self) -> tuple[int, ...]:
        ids = {t.arm: t.drafter.config.target_layer_ids for t in self.trainees}
        if len(set(ids.values())) > 1:
            raise UserError(f"arms trained side by side read the same target layers, not {ids}", "mend the recipes")
        return next(iter(ids.values()))

    def _held_out(self) -> list[TrainingBatch]:
        """The same anchors at every evaluation."""
        samples, contract = self.job.held_out, self.job.contract
        collator = Collator(samples, self.job.target, self.collator.layer_ids, contract.anchors, contract.seed)
        size = contract.micro_batch
        return [collator.batch(range(i, min(i + size, len(samples))), step=0) for i in range(0, len(samples), size)]

    def _resume(self) -> int:
        found = training_state.states(self.job.folder)
        if not found:
            return 0
        step = training_state.resume_step(found[-1], self.identity)
        for t in self.trainees:
            state = training_state.load_arm(found[-1], t.arm)
            if state["config"] != t.drafter.config.to_json():
                raise UserError(f"{found[-1]}: {t.arm} has another [model] recipe", "train into a new folder")
            t.load_state_dict(state)
        return step


def trainee(run: Run, arm: str) -> Trainee:
    """``arm`` with its initial weights, which depend on the seed alone and not on the arms beside it."""
    recipe = load_recipe(arm, run.recipes / f"{arm}.toml" if run.recipes else None)
    config = DrafterConfig.from_target(run.target.config, arm, mask_token_id=run.mask_token_id, **recipe.model)
    torch.manual_seed(run.contract.seed)
    drafter = build(config)
    if run.backbone:
        own = drafter.state_dict()
        start = load_file(run.backbone / "model.safetensors")
        drafter.load_state_dict({**own, **{name: start[name] for name in start if name in own}})
    return Trainee(arm, drafter.to(run.target.embedding_VH.device), recipe.loss, run.contract)


def rank() -> int:
    """Rank of this process; 0 without torch.distributed."""
    return dist.get_rank() if dist.is_initialized() else 0

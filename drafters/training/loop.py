"""Joint training: every arm of a contract side by side, on the same batches, from one pass of the target.

Knows the loop: batch, update each arm, report, evaluate, keep a state; where it stops, it resumes with the same weights
bit for bit (on a CPU). An arm's update is `trainee`'s, its formula its own ``loss.py``'s, the files `checkpoint`'s.
Runs alone or under ``torchrun``: ranks share each step's samples.
"""

import hashlib
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from drafters.corpus.samples import Sample
from drafters.model.blocks import TrainingBatch
from drafters.model.config import DrafterConfig
from drafters.model.losses import Loss
from drafters.model.registry import Recipe, load_recipe
from drafters.reference.target import Target
from drafters.training import checkpoint as training_state
from drafters.training.acceptance import Acceptance, prompts_of
from drafters.training.anchors import mix
from drafters.training.branches import branch_scales
from drafters.training.collate import Collator
from drafters.training.contract import Contract
from drafters.training.progress import Reporter
from drafters.training.provenance import commit
from drafters.training.sample_order import Order
from drafters.training.start import start
from drafters.training.trainee import NotFiniteError, Trainee, metrics, world
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import reading

REPORT_EVERY = 20  # steps


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a training run is made of.

    ``recipes`` holds an ``ARM.toml`` for each arm (default: the recipes of the paper's scale); ``backbone`` is a
    checkpoint folder whose backbone every arm starts from (default: drawn anew); ``target_digest`` is that of the
    target's folder.
    """

    folder: Path
    contract: Contract
    target: Target
    target_digest: str
    samples: list[Sample]
    held_out: list[Sample]
    mask_token_id: int
    recipes: Path | None = None
    backbone: Path | None = None

    def identity(self) -> dict[str, str]:
        """What a resumed run must share with the one it continues.

        Not the number of ranks: weights do not depend on it (`trainee`), nor do data order and anchors.
        """
        tokens = hashlib.sha256(b"".join(s.ids_S.numpy().tobytes() for s in self.samples)).hexdigest()
        return {"contract": self.contract.digest(), "corpus": tokens[:16], "target": self.target_digest}

    def recipe(self, arm: str) -> Recipe:
        """The recipe of ``arm``."""
        return load_recipe(arm, self.recipes / f"{arm}.toml" if self.recipes else None)

    def provenance(self) -> dict[str, Any]:
        """What an export says about the training beside `identity`."""
        recipes = {arm: self.recipe(arm).to_json() for arm in self.contract.arms}
        return {"terms": self.contract.to_json(), "recipes": recipes, "commit": commit()}


class Training:
    """A run in progress on this rank.

    Raises `UserError` when the corpus is smaller than a batch or does not split over the ranks, the arms read different
    target layers, a frozen backbone is not given, or the run's state belongs to another contract, corpus or target.
    """

    def __init__(self, run: Run) -> None:
        self.job, contract = run, run.contract
        contract.require_even(world())
        if contract.frozen_backbone and not run.backbone:
            raise UserError("frozen_backbone: no --backbone, so it would stay as drawn", "name a trained checkpoint")
        self.steps = contract.steps(len(run.samples))
        _require_in_vocabulary((*run.samples, *run.held_out), len(run.target.embedding_VH))
        self.order = Order([len(s.ids_S) for s in run.samples], contract.batch, contract.seed)
        self.trainees = [trainee(run, arm) for arm in contract.arms]
        self.collator = Collator(run.samples, run.target, self._layer_ids(), contract.anchors, contract.seed)
        prompts = prompts_of(run.held_out, contract.decode_prompts)
        self.acceptance = Acceptance(run.target, prompts, contract.decode_tokens, self.trainees[0].dtype)
        self.identity, self.provenance = run.identity(), run.provenance()
        self.step = self.began = self._resume()
        self.best = {arm: training_state.load_best(run.folder, arm) for arm in contract.arms}

    def run(self) -> None:
        """Every step that is left; the last leaves a state. `UserError` at the first number that is not finite."""
        contract = self.job.contract
        with Reporter(self.job.folder, self.step, self.steps, silent=rank() > 0) as reporter:
            if self.step == 0:
                self._say_branches(reporter)
            while self.step < self.steps and not self.stalled():
                started = time.perf_counter()
                values, tokens = self.update()
                pace = tokens * world() / (time.perf_counter() - started)
                if self.step == self.began + 1:
                    reporter.first_step(time.perf_counter() - started)
                reporter.advance(self.step, {arm: v["loss"] for arm, v in values.items()})
                if self.step % REPORT_EVERY == 0:
                    for arm, v in values.items():
                        reporter.report(self.step, arm, "train", {**v, "tokens_per_s": pace})
                if self.job.held_out and (self.step == self.steps or self.step % contract.evaluate_every == 0):
                    for arm, v in self.evaluate().items():
                        reporter.report(self.step, arm, "held_out", v)
                last = self.step == self.steps or self.stalled()
                if last or self.step % contract.checkpoint_every == 0:
                    self._save()

    def update(self) -> tuple[dict[str, dict[str, float]], int]:
        """One optimiser step of every arm; metrics by arm, and the tokens of this rank's samples."""
        contract, step = self.job.contract, self.step
        torch.manual_seed(mix(contract.seed, step, rank()))  # a head with dropout resumes exactly, too
        indices = self.order.indices(step, rank(), world())
        rounds = [indices[i : i + contract.micro_batch] for i in range(0, len(indices), contract.micro_batch)]
        batches = [self.collator.batch(chunk, step, step / self.steps) for chunk in rounds]
        rate = contract.rate(step, self.steps)
        try:
            values = {t.arm: t.update(batches, rate) for t in self.trainees}
        except NotFiniteError as error:
            raise self._stopped(error) from None
        self.step += 1
        return values, sum(self.order.lengths[i] for i in indices)

    def evaluate(self) -> dict[str, dict[str, float]]:
        """Held-out losses and decoded acceptance by arm; an arm's best weights so far are kept."""
        losses: dict[str, list[Loss]] = {t.arm: [] for t in self.trainees}
        for batch in self._held_out():
            for t in self.trainees:
                losses[t.arm].append(t.measure(batch))
        values = {t.arm: metrics(losses[t.arm]) | self.acceptance.of(t.drafter) for t in self.trainees}
        for t in self.trainees:
            tau = values[t.arm].get("decoded_tau")
            if tau is not None and tau > self.best[t.arm].tau:
                self.best[t.arm] = training_state.Best(self.step, tau)
                if rank() == 0:
                    training_state.save_best(
                        self.job.folder, t.arm, self.best[t.arm], t.drafter, self.identity, self.provenance
                    )
        return values

    def stalled(self) -> bool:
        """Whether no arm's decoded tau has grown for ``patience`` evaluations."""
        contract = self.job.contract
        allowed = contract.patience * contract.evaluate_every
        return bool(allowed) and all(best.tau and self.step - best.step >= allowed for best in self.best.values())

    def _save(self) -> None:
        try:
            for t in self.trainees:
                t.require_finite()
        except NotFiniteError as error:
            raise self._stopped(error) from None
        if rank() == 0:
            states = ((t.arm, t.state_dict()) for t in self.trainees)
            training_state.save(self.job.folder, self.step, states, self.identity, self.provenance)

    def _stopped(self, error: NotFiniteError) -> UserError:
        kept = training_state.states(self.job.folder)
        where = f"the state after step {int(kept[-1].name[5:])} is kept" if kept else "no state was kept yet"
        return UserError(f"training stopped in step {self.step + 1}: {error}", f"{where}; lower learning_rate")

    def _say_branches(self, reporter: Reporter) -> None:
        """What each head sees of its inputs before training: a branch a hundred times smaller is as good as absent."""
        batch = self.collator.batch([0], step=0)
        for t in self.trainees:
            scales = branch_scales(t, batch)
            reporter.report(0, t.arm, "branches", scales)
            if scales and rank() == 0:
                said = ", ".join(f"{name} {value:.3g}" for name, value in scales.items())
                print(f"{t.arm}: rms of the head's branches at the start: {said}", file=sys.stderr)

    def _layer_ids(self) -> tuple[int, ...]:
        ids = {t.arm: t.drafter.config.target_layer_ids for t in self.trainees}
        if len(set(ids.values())) > 1:
            raise UserError(f"arms trained side by side read the same target layers, not {ids}", "correct the recipes")
        return next(iter(ids.values()))

    def _held_out(self) -> Iterator[TrainingBatch]:
        """One batch at a time on the device; the same anchors at every evaluation."""
        samples, contract = self.job.held_out, self.job.contract
        collator = Collator(samples, self.job.target, self.collator.layer_ids, contract.anchors, contract.seed)
        for i in range(0, len(samples), contract.micro_batch):
            yield collator.batch(range(i, min(i + contract.micro_batch, len(samples))), step=0)

    def _resume(self) -> int:
        found = training_state.states(self.job.folder)
        if not found:
            return 0
        step = training_state.resume_step(found[-1], self.identity)
        for t in self.trainees:
            state = training_state.load_arm(found[-1], t.arm, "optimiser")
            if state["config"] != t.drafter.config.to_json():
                raise UserError(f"{found[-1]}: {t.arm} has another [model] recipe", "train into a new folder")
            with reading(found[-1] / f"{t.arm}.pt", training_state.REMEDY, "does not fit this arm"):
                t.load_state_dict(state)
        return step


def in_sequence(run: Run) -> None:
    """Each arm to its end before the next is built, in a folder of its own: the memory of one arm, the same weights."""
    for arm in run.contract.arms:
        contract = replace(run.contract, arms=(arm,))
        Training(replace(run, folder=run.folder / arm, contract=contract)).run()


def trainee(run: Run, arm: str) -> Trainee:
    """``arm`` with its initial weights."""
    recipe = run.recipe(arm)
    config = DrafterConfig.from_target(run.target.config, arm, mask_token_id=run.mask_token_id, **recipe.model)
    drafter = start(config, run.contract.seed, run.backbone)
    return Trainee(arm, drafter.to(run.target.embedding_VH.device), recipe.loss, run.contract)


def _require_in_vocabulary(samples: Iterable[Sample], size: int) -> None:
    for sample in samples:
        if (most := int(sample.ids_S.max())) >= size:
            hint = "regenerate the corpus with this target"
            raise UserError(f"corpus: {sample.id}: token {most}, and the target's vocabulary has {size}", hint)


def rank() -> int:
    """Rank of this process; 0 without torch.distributed."""
    return dist.get_rank() if dist.is_initialized() else 0

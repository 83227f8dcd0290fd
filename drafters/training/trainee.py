"""One arm in training: its drafter, its own loss and its own optimiser, everything else being shared with its rivals.

Parameters and AdamW moments are fp32 and the compute runs under autocast, so that a norm weight near 1 can move by less
than bf16 resolves (ModelOpt PR 2322 found 78 % of such weights frozen without that). The initial weights are rounded to
bf16 once, as in the paper.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from drafters.model.blocks import TrainingBatch
from drafters.model.drafter import Drafter
from drafters.model.losses import Loss, LossFunction
from drafters.training.contract import Contract


class Step(nn.Module):
    """A drafter and its loss as one module, because DDP synchronises the gradients of a forward call only."""

    def __init__(self, drafter: Drafter, loss: LossFunction, dtype: torch.dtype | None) -> None:
        super().__init__()
        self.drafter, self.loss, self.dtype = drafter, loss, dtype

    def forward(self, batch: TrainingBatch) -> Loss:
        with torch.autocast(batch.tokens_BS.device.type, self.dtype, enabled=self.dtype is not None):
            return self.loss(self.drafter, batch)


class Trainee:
    """``arm`` in training; ``drafter`` is on the training device."""

    def __init__(self, arm: str, drafter: Drafter, loss: LossFunction, contract: Contract) -> None:
        self.arm, self.drafter, self.contract = arm, drafter, contract
        self.weights = list(drafter.parameters())
        _round_to_bf16(self.weights)
        self.optimiser = torch.optim.AdamW(
            self.weights, lr=contract.learning_rate, weight_decay=contract.weight_decay, fused=True
        )
        self.step = Step(drafter, loss, torch.bfloat16 if contract.precision == "bf16" else None)
        # Domino's head has no gradient at lambda 1, LiLiCorr's none in a batch without a whole block
        self.forward = DistributedDataParallel(self.step, find_unused_parameters=True) if world() > 1 else self.step

    def update(self, batches: Sequence[TrainingBatch], rate: float) -> dict[str, float]:
        """One optimiser step at ``rate`` times the contract's learning rate; metrics of this rank's share.

        Each round of micro-batches is normalised over all ranks exactly; rounds are averaged.
        """
        losses = [self._backward(batch, len(batches)) for batch in batches]
        norm = nn.utils.clip_grad_norm_(self.weights, self.contract.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = self.contract.learning_rate * rate
        self.optimiser.step()
        self.optimiser.zero_grad()
        return metrics(losses) | {"grad_norm": float(norm)}

    def _backward(self, batch: TrainingBatch, rounds: int) -> Loss:
        loss: Loss = self.forward(batch)
        # DDP averages gradients over ranks, the loss is a sum over them
        (loss.over(_over_ranks(loss.norms)) * world() / rounds).backward()
        return loss

    @torch.no_grad()
    def evaluate(self, batches: Sequence[TrainingBatch]) -> dict[str, float]:
        """Losses and prefixes over held-out ``batches``, without a gradient."""
        self.drafter.eval()
        values = metrics([self.step(batch) for batch in batches])
        self.drafter.train()
        return values

    def state_dict(self) -> dict[str, Any]:
        """Config, weights and moments, as `training_state` keeps them."""
        return {
            "config": self.drafter.config.to_json(),
            "drafter": self.drafter.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.drafter.load_state_dict(state["drafter"])
        self.optimiser.load_state_dict(state["optimiser"])


def metrics(losses: Sequence[Loss]) -> dict[str, float]:
    """Means over the union of the batches of ``losses``: loss, its terms, and tau and prefixes over whole blocks."""
    norms, counts = _positive(_sum(loss.norms for loss in losses)), _sum(loss.counts for loss in losses)
    values = {"loss": float(sum(loss.over(norms).detach() for loss in losses))}
    sums = _sum(loss.sums for loss in losses)
    values |= {name: float(total / norms[name]) for name, total in sums.items()}
    blocks = max(float(counts["blocks"]), 1.0)
    values |= {name: float(total) / blocks for name, total in counts.items() if name != "blocks"}
    return values | {"tau": 1 + values["selected_prefix"], "blocks": float(counts["blocks"])}


def world() -> int:
    """Number of ranks; 1 without torch.distributed."""
    return dist.get_world_size() if dist.is_initialized() else 1


def _sum(mappings: Any) -> dict[str, Tensor]:
    total: Counter[str] = Counter()
    for mapping in mappings:
        for name, value in mapping.items():
            total[name] += value.detach()
    return dict(total)


def _over_ranks(norms: Any) -> dict[str, Tensor]:
    summed = {name: value.detach().clone() for name, value in norms.items()}
    if dist.is_initialized():
        for value in summed.values():
            dist.all_reduce(value)
    return _positive(summed)


def _positive(norms: dict[str, Tensor]) -> dict[str, Tensor]:
    """A term that nothing was counted for (LiLiCorr's, before the pool holds any true token) is 0 / tiny = 0."""
    return {name: value.float().clamp_min(1e-6) for name, value in norms.items()}


def _round_to_bf16(weights: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for weight in weights:
            weight.copy_(weight.to(torch.bfloat16))

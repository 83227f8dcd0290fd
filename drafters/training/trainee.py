"""One arm in training: its drafter, its own loss and its own optimiser, everything else being shared with its rivals.

Parameters and AdamW moments are fp32 and the compute runs under autocast, so that a norm weight near 1 can move by less
than bf16 resolves (ModelOpt PR 2322 found 78 % of such weights frozen without that). The initial weights are rounded to
bf16 once, as in the paper.

A step's loss is normalised over all its blocks, whatever round and rank they fall into, so weights depend neither on
the number of ranks nor on the micro-batch. Gradients are summed over ranks once a step, after its last round; DDP would
do it in every round and average what is a sum.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from drafters.model.blocks import TrainingBatch
from drafters.model.drafter import Drafter
from drafters.model.losses import Loss, LossFunction
from drafters.training.contract import Contract
from sglang_specbench.errors import UserError

Scalars = dict[str, Tensor]
_BUCKET = 2**26  # numbers of one message between ranks


class NotFiniteError(ValueError):
    """A loss, gradient norm or weight is NaN or infinite; the optimiser has not taken the step."""


class Trainee:
    """``arm`` in training; ``drafter`` is on the training device. `UserError` if nothing of it is to be trained."""

    def __init__(self, arm: str, drafter: Drafter, loss: LossFunction, contract: Contract) -> None:
        self.arm, self.drafter, self.contract = arm, drafter, contract
        self.formula, self.dtype = loss, torch.bfloat16 if contract.precision == "bf16" else None
        if contract.frozen_backbone:
            drafter.backbone.requires_grad_(False)
        self.weights = [weight for weight in drafter.parameters() if weight.requires_grad]
        if not self.weights:
            raise UserError(f"{arm} has no head to train beside a frozen backbone", "leave it out of arms")
        _round_to_bf16(self.weights)
        self.optimiser = torch.optim.AdamW(
            self.weights, lr=contract.learning_rate, weight_decay=contract.weight_decay, fused=True
        )

    def loss(self, batch: TrainingBatch) -> Loss:
        """The arm's loss in the precision of the contract."""
        with torch.autocast(batch.tokens_BS.device.type, self.dtype, enabled=self.dtype is not None):
            return self.formula(self.drafter, batch)

    def update(self, batches: Sequence[TrainingBatch], rate: float) -> dict[str, float]:
        """One optimiser step over ``batches`` of every rank, at ``rate`` times the contract's learning rate.

        Returns the step's metrics over all ranks. Raises `NotFiniteError` on every rank before any weight moves.
        """
        losses = self._backward(batches)
        norm = nn.utils.clip_grad_norm_(self.weights, self.contract.clip)
        values = metrics(losses, over_ranks) | {"grad_norm": float(norm)}
        for name in ("loss", "grad_norm"):
            if not math.isfinite(values[name]):
                self.optimiser.zero_grad()
                raise NotFiniteError(f"{name} of {self.arm} is {values[name]}")
        for group in self.optimiser.param_groups:
            group["lr"] = self.contract.learning_rate * rate
        self.optimiser.step()
        self.optimiser.zero_grad()
        return values

    def _backward(self, batches: Sequence[TrainingBatch]) -> list[Loss]:
        """Gradients of the whole step's loss in every weight; the rounds' losses, without their graphs.

        Where all terms are counted alike, shares are summed and divided at the end. Where they are not (LiLiCorr's
        oracle prefix depends on the drafter), a step of several rounds is counted first, by a pass without a gradient.
        """
        first = self.loss(batches[0])
        alike = first.counted_alike
        if alike:
            norms = dict.fromkeys(first.norms, torch.ones((), device=self.weights[0].device))
        else:
            with torch.no_grad():
                rest = [self.loss(batch).norms for batch in batches[1:]]
            norms = _positive(over_ranks(_sum([first.norms, *rest])))
        first.over(norms).backward()
        losses = [first.detached()]
        for batch in batches[1:]:
            loss = self.loss(batch)
            loss.over(norms).backward()
            losses.append(loss.detached())
        total = _positive(over_ranks(_sum(loss.norms for loss in losses))) if alike else {}
        self._sum_gradients(1 / next(iter(total.values())) if alike else None)
        return losses

    def _sum_gradients(self, scale: Tensor | None) -> None:
        """Sum over ranks; a weight that this step did not reach has gradient 0 on every rank, not none on some."""
        for weight in self.weights:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        gradients = [weight.grad for weight in self.weights if weight.grad is not None]
        if dist.is_initialized():
            for bucket in _buckets(gradients):
                flat = _flatten_dense_tensors(bucket)
                dist.all_reduce(flat)
                torch._foreach_copy_(bucket, _unflatten_dense_tensors(flat, bucket))
        if scale is not None:
            torch._foreach_mul_(gradients, scale)

    @torch.no_grad()
    def measure(self, batch: TrainingBatch) -> Loss:
        """The loss of a held-out batch, without a gradient."""
        self.drafter.eval()
        loss = self.loss(batch)
        self.drafter.train()
        return loss

    def require_finite(self) -> None:
        """`NotFiniteError` naming the first weight that is not."""
        for name, weight in self.drafter.named_parameters():
            if not weight.isfinite().all():
                raise NotFiniteError(f"weight {name} of {self.arm} is not finite")

    def state_dict(self) -> dict[str, Any]:
        """Config, weights and moments, as `checkpoint` keeps them."""
        return {
            "config": self.drafter.config.to_json(),
            "drafter": self.drafter.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.drafter.load_state_dict(state["drafter"])
        self.optimiser.load_state_dict(state["optimiser"])


def metrics(losses: Sequence[Loss], pooled: Callable[[Scalars], Scalars] = dict) -> dict[str, float]:
    """Means over the union of the batches of ``losses``: loss, its terms, and tau and prefixes over whole blocks.

    ``pooled`` adds the sums of other ranks (default: none).
    """
    sums, norms, counts = (pooled(_sum(getattr(loss, name) for loss in losses)) for name in ("sums", "norms", "counts"))
    norms = _positive(norms)
    values = {name: float(total / norms[name]) for name, total in sums.items()}
    values = {"loss": sum(losses[0].weights[name] * value for name, value in values.items()), **values}
    blocks = max(float(counts["blocks"]), 1.0)
    values |= {name: float(total) / blocks for name, total in counts.items() if name != "blocks"}
    return values | {"tau": 1 + values["selected_prefix"], "blocks": float(counts["blocks"])}


def world() -> int:
    """Number of ranks; 1 without torch.distributed."""
    return dist.get_world_size() if dist.is_initialized() else 1


def over_ranks(values: Mapping[str, Tensor]) -> Scalars:
    """Each scalar summed over ranks, in one message."""
    if not dist.is_initialized():
        return dict(values)
    together = torch.stack([value.detach().double() for value in values.values()])
    dist.all_reduce(together)
    return dict(zip(values, together.unbind(), strict=True))


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Few messages rather than one for each tensor, and no copy of all of them at once."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and sum(t.numel() for t in bucket) + tensor.numel() > _BUCKET:
            yield bucket
            bucket = []
        bucket.append(tensor)
    yield bucket


def _sum(mappings: Any) -> Scalars:
    total: Counter[str] = Counter()
    for mapping in mappings:
        for name, value in mapping.items():
            total[name] += value.detach()
    return dict(total)


def _positive(norms: Scalars) -> Scalars:
    """A term that nothing was counted for (LiLiCorr's, before the pool holds any true token) is 0 / tiny = 0."""
    return {name: value.float().clamp_min(1e-6) for name, value in norms.items()}


def _round_to_bf16(weights: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for weight in weights:
            weight.copy_(weight.to(torch.bfloat16))

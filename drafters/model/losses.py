"""What an arm's loss returns: weighted ratios, kept apart so that they can be normalised over more than one batch.

A loss is a sum over terms of ``weight * sum / norm``, where ``norm`` counts what ``sum`` runs over. Averaging finished
losses of batches with unequal norms is not the loss of their union; `Loss.over` takes the norms of the union (summed
over ranks and micro-batches) instead. Not here: any formula of an arm.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from drafters.model.blocks import Labels

LossFunction = Callable[[Any, Any], "Loss"]  # (Drafter, TrainingBatch)


@dataclass(frozen=True)
class Loss:
    """One batch's loss. All values are scalars; only ``sums`` carry a graph.

    ``counts`` are sums over the whole blocks of the batch (all their labels supervised): ``blocks``, and the summed
    lengths of the leading run of right tokens, ``top1_prefix`` (the backbone alone), ``selected_prefix`` (with the
    head, greedy: a right prefix is its own teacher forcing) and ``oracle_prefix`` (best candidate; arms with K
    candidates). ``1 + selected_prefix / blocks`` estimates tau at temperature 0.
    """

    weights: Mapping[str, float]
    sums: Mapping[str, Tensor]
    norms: Mapping[str, Tensor]
    counts: Mapping[str, Tensor]

    @property
    def parts(self) -> dict[str, Tensor]:
        """Each term's mean over this batch, unweighted and without a graph."""
        return {name: (value / _divisor(self.norms[name])).detach() for name, value in self.sums.items()}

    @property
    def total(self) -> Tensor:
        """The loss of this batch alone."""
        return self.over(self.norms)

    @property
    def counted_alike(self) -> bool:
        """Whether one count divides every term, so that a sum of shares can be divided after the backward pass."""
        return len({id(norm) for norm in self.norms.values()}) == 1

    def detached(self) -> "Loss":
        """The same numbers without a graph."""
        return replace(self, sums={name: value.detach() for name, value in self.sums.items()})

    def over(self, norms: Mapping[str, Tensor]) -> Tensor:
        """The batch's share of a loss normalised by ``norms``; shares of disjoint batches add up to the loss."""
        terms = [self.weights[name] * value / _divisor(norms[name]) for name, value in self.sums.items()]
        return sum(terms[1:], terms[0])


def prefix_counts(labels: Labels, slots: int, **right_MD: Tensor) -> dict[str, Tensor]:
    """``blocks`` and, for each named table of right slots, the summed lengths of leading runs over whole blocks."""
    whole_M = labels.supervised_MD[:, :slots].all(1)
    counts = {"blocks": whole_M.sum()}
    for name, right in right_MD.items():
        counts[f"{name}_prefix"] = right[whole_M, :slots].long().cumprod(1).sum()
    return counts


def _divisor(norm: Tensor) -> Tensor:
    """Nothing to average is no loss (the sum is 0 too), not a NaN."""
    return norm.clamp_min(1e-6)

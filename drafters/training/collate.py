"""Samples to one `TrainingBatch`: padded tokens, this step's anchors, and one pass of the frozen target for all arms.

Shapes: B samples, S positions, N anchors of a sample (padded), F concatenated target features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from drafters.corpus.samples import Sample
from drafters.model.blocks import TrainingBatch
from drafters.reference.target import Target
from drafters.training.anchors import sample_anchors


@dataclass(frozen=True)
class Collator:
    """Batches of ``samples`` with at most ``anchors`` blocks each, read at the target's ``layer_ids``."""

    samples: Sequence[Sample]
    target: Target
    layer_ids: tuple[int, ...]
    anchors: int
    seed: int

    def batch(self, indices: Sequence[int], step: int, progress: float = 0.0) -> TrainingBatch:
        """The samples of ``indices`` as they are trained on in ``step``, on the target's device."""
        samples = [self.samples[i] for i in indices]
        device = self.target.embedding_VH.device
        anchor_BN, keep_BN = self._anchors(indices, step)
        tokens_BS = pad_sequence([s.ids_S for s in samples], batch_first=True).to(device)
        features_BSF, final_BSH = self.target.states(tokens_BS, self.layer_ids)
        return TrainingBatch(
            tokens_BS=tokens_BS,
            loss_BS=pad_sequence([s.loss_S for s in samples], batch_first=True).to(device),
            anchor_BN=anchor_BN.to(device),
            keep_BN=keep_BN.to(device),
            features_BSF=features_BSF,
            final_BSH=final_BSH,
            embedding_VH=self.target.embedding_VH,
            head_VH=self.target.head_VH,
            progress=progress,
        )

    def _anchors(self, indices: Sequence[int], step: int) -> tuple[Tensor, Tensor]:
        drawn = [
            sample_anchors(self.samples[i].loss_S, self.anchors, seed=self.seed, step=step, sample=i) for i in indices
        ]
        keep_BN = pad_sequence([torch.ones(len(a), dtype=torch.bool) for a in drawn], batch_first=True)
        return pad_sequence(drawn, batch_first=True), keep_BN

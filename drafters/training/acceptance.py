"""Acceptance while training: the reference loop decodes a few held-out prompts with each arm, at temperature 0.

Teacher-forced prefixes (`losses`) start every block from the target's own tokens at random places; decoding starts each
one where the last was rejected, as serving does. Prompts and lengths are fixed, so evaluations of a run are comparable.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from drafters.corpus.samples import Sample
from drafters.model.drafter import Drafter
from drafters.reference.decode import Rule, decode
from drafters.reference.target import Target


@dataclass(frozen=True)
class Acceptance:
    """``prompts`` are token ids; ``dtype`` is that of the autocast, None for none."""

    target: Target
    prompts: Sequence[list[int]]
    new_tokens: int
    dtype: torch.dtype | None

    def of(self, drafter: Drafter) -> dict[str, float]:
        """decoded_tau = 1 + accepted drafts / verify blocks over all prompts, blocks and seconds; ranks share them.

        Empty when no prompt reached a verify block.
        """
        started, rank, world = time.perf_counter(), 0, 1
        if dist.is_initialized():
            rank, world = dist.get_rank(), dist.get_world_size()
        drafter.eval()
        counts_2 = torch.zeros(2, device=self.target.embedding_VH.device)
        with torch.autocast(counts_2.device.type, self.dtype, enabled=self.dtype is not None):
            for prompt in self.prompts[rank::world]:
                done = decode(self.target, drafter, prompt, self.new_tokens, Rule(), eos_ids=self._ends())
                counts_2 += torch.tensor([sum(done.accepted), len(done.accepted)], device=counts_2.device)
        drafter.train()
        if dist.is_initialized():
            dist.all_reduce(counts_2)
        accepted, blocks = counts_2.tolist()
        if not blocks:
            return {}
        seconds = time.perf_counter() - started
        return {"decoded_tau": 1 + accepted / blocks, "decoded_blocks": blocks, "decode_s": seconds}

    def _ends(self) -> tuple[int, ...]:
        ends = self.target.model.generation_config.eos_token_id
        return tuple(ends) if isinstance(ends, list) else () if ends is None else (ends,)


def prompts_of(samples: Sequence[Sample], count: int) -> list[list[int]]:
    """Token ids before the first supervised one, of ``count`` samples spread evenly over ``samples``."""
    count = min(count, len(samples))
    chosen = [samples[index * len(samples) // count] for index in range(count)]
    cut = [s.ids_S[: int(s.loss_S.long().argmax())].tolist() for s in chosen]
    return [ids for ids in cut if ids]

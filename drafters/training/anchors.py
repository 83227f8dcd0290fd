"""Anchors: from which tokens of a sample a block is drafted in this step.

An anchor is valid when it and the token after it are supervised (SpecForge's rule), so every block has a label. Anchors
are drawn uniformly without replacement, anew each step, from a generator seeded by (seed, step, sample index): the draw
depends neither on rank nor on what was trained before, so a resumed or re-sharded run draws the same ones.
"""

import hashlib

import torch
from torch import Tensor


def valid_anchors(loss_S: Tensor) -> Tensor:
    """Positions (int64, ascending) whose own and next token are supervised, for a bool mask ``loss_S``."""
    return (loss_S[:-1] & loss_S[1:]).nonzero()[:, 0]


def sample_anchors(loss_S: Tensor, count: int, *, seed: int, step: int, sample: int) -> Tensor:
    """At most ``count`` valid anchors, ascending; all of them when there are no more than ``count``."""
    valid_N = valid_anchors(loss_S)
    generator = torch.Generator().manual_seed(mix(seed, step, sample))
    chosen_n = torch.randperm(len(valid_N), generator=generator)[:count]
    return valid_N[chosen_n].sort().values


def mix(*numbers: int) -> int:
    """63 bits that differ for neighbouring steps and samples (a sum or xor of small numbers would collide)."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1

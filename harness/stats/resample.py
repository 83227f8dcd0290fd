"""Clustered, paired bootstrap over prompts, as one matrix product.

A resample is a vector of counts: how often each prompt was drawn. All turns of a prompt go together (clustered), and
the counts depend on nothing but the prompt ids and the seed, so two cells over the same prompts, in one run or in two,
share their resamples (paired): subtract or divide their draws and the interval is that of the paired difference.
Every statistic here is a function of per-prompt sums, so ``counts @ sums`` is the whole bootstrap.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

REPLICATES = 1000
SEED = 20608530


def counts(prompts: Sequence[str], replicates: int = REPLICATES, seed: int = SEED) -> NDArray[np.float64]:
    """Shape (1 + replicates, len(prompts)); row 0 is all ones (the sample itself), every row sums to len(prompts)."""
    return _counts(tuple(prompts), replicates, seed)


@lru_cache(maxsize=64)
def _counts(prompts: tuple[str, ...], replicates: int, seed: int) -> NDArray[np.float64]:
    key = int.from_bytes(hashlib.sha256("\n".join(prompts).encode()).digest()[:8], "big")
    rng = np.random.default_rng([seed, key])
    n = len(prompts)
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=replicates)
    return np.vstack([np.ones((1, n)), drawn]).astype(np.float64)

"""The order of samples: which ones rank r of w trains on in step s, as a pure function of (seed, s, r, w).

Nothing is remembered between steps, so a resumed run continues with the very batch that the killed one would have
trained on. Samples of similar length share a step (less padding); the steps of an epoch come in random order.
"""

from random import Random

_POOL = 8  # steps' worth of samples that are sorted by length together


class Order:
    """The steps of a run over samples of the given ``lengths``; the last partial batch of an epoch is dropped."""

    def __init__(self, lengths: list[int], batch: int, seed: int) -> None:
        self.lengths, self.batch, self.seed = lengths, batch, seed
        self.steps_per_epoch = len(lengths) // batch
        self._epoch, self._steps = -1, [[0]]

    def indices(self, step: int, rank: int = 0, world: int = 1) -> list[int]:
        """Indices of the samples of 0-based ``step`` that ``rank`` trains on (every ``world``-th one)."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._steps = epoch, self._shuffled(epoch)
        return self._steps[position][rank::world]

    def _shuffled(self, epoch: int) -> list[list[int]]:
        random = Random(f"{self.seed}/{epoch}")
        order = list(range(len(self.lengths)))
        random.shuffle(order)
        order = order[: self.steps_per_epoch * self.batch]
        pool = self.batch * _POOL
        steps = []
        for start in range(0, len(order), pool):
            chunk = sorted(order[start : start + pool], key=lambda i: self.lengths[i])
            steps += [chunk[i : i + self.batch] for i in range(0, len(chunk), self.batch)]
        random.shuffle(steps)
        return steps

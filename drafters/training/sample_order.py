"""The order of samples: which ones rank r of w trains on in step s, as a pure function of (seed, s, r, w).

Nothing is remembered between steps, so a resumed run continues with the very batch that the killed one would have
trained on. A step's samples are drawn whatever their length (lengths go with domains, and a step of one domain would
pull its own way) and then sorted by it, so that the micro-batches inside a step pad little.
"""

from random import Random


class Order:
    """The steps of a run over samples of the given ``lengths``; the last partial batch of an epoch is dropped."""

    def __init__(self, lengths: list[int], batch: int, seed: int) -> None:
        self.lengths, self.batch, self.seed = lengths, batch, seed
        self.steps_per_epoch = len(lengths) // batch
        self._epoch, self._order = -1, [0]

    def indices(self, step: int, rank: int = 0, world: int = 1) -> list[int]:
        """Indices of the samples of 0-based ``step`` that ``rank`` trains on, short to long."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, list(range(len(self.lengths)))
            Random(f"{self.seed}/{epoch}").shuffle(self._order)
        drawn = self._order[position * self.batch : (position + 1) * self.batch]
        return sorted(drawn, key=lambda i: self.lengths[i])[rank::world]

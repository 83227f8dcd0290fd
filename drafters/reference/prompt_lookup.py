"""Prompt-lookup drafting: copy what followed the last occurrence of the newest n-gram.

Knows token ids only: no model, no training. The proposal is a point mass, so the target-only rule of ``verify``
applies and the output stays exact. Source: A. Saxena, "Prompt Lookup Decoding" (2023); longest match first, the
latest occurrence first.
"""

from collections.abc import Sequence


def lookup(context: Sequence[int], slots: int, longest: int = 3) -> list[int]:
    """Up to ``slots`` tokens that followed the latest earlier occurrence of the context's last n-gram.

    n falls from ``longest`` to 1; an empty list means that not even the last token occurred before.
    """
    ids = list(context)
    for n in range(min(longest, len(ids) - 1), 0, -1):
        tail = ids[-n:]
        for start in range(len(ids) - n - 1, -1, -1):
            if ids[start : start + n] == tail:
                return ids[start + n : start + n + slots]
    return []

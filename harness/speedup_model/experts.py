"""Mixtures of experts: how many experts a pass over several tokens has to read, and what one more token adds.

All of it for uniform, independent routing: an upper bound in practice, since real routers prefer some experts and
neighbouring tokens agree.
"""

import math


def experts_touched(experts: int, routed: int, tokens: float) -> float:
    """Expected distinct experts of ``experts`` when each of ``tokens`` picks ``routed`` of them."""
    return float(experts * (1 - (1 - routed / experts) ** tokens))


def experts_added(experts: int, routed: int, tokens: float) -> float:
    """Expected experts that one more token reads after ``tokens``: ``routed`` at first, none in the end."""
    return float(routed * (1 - routed / experts) ** tokens)


def tokens_to_touch(experts: int, routed: int, share: float) -> int:
    """Tokens of a pass that touch ``share`` of the experts on average: from there on, one more adds next to nothing."""
    if routed == experts:
        return 1
    return math.ceil(math.log(1 - share) / math.log(1 - routed / experts))

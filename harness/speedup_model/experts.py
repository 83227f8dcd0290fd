"""Mixtures of experts: how many experts a pass over several tokens has to read."""


def experts_touched(experts: int, routed: int, tokens: int) -> float:
    """Expected distinct experts of ``experts`` when each of ``tokens`` picks ``routed`` uniformly, independently.

    An upper bound in practice: real routers prefer some experts, and neighbouring tokens agree.
    """
    return experts * (1 - (1 - routed / experts) ** tokens)

"""What a block is worth: expected tokens, speedup, and the draft length that pays best.

Knows acceptance as a survival curve and costs in units of one target pass; not hardware (`roofline`) and not
measurements (`predict`). ``survival[k]`` is the probability that the first k + 1 drafted tokens are all accepted.

Source: Leviathan et al., arXiv 2211.17192, equation 1 (expected tokens) and theorem 3.8 (speedup).
"""

from collections.abc import Callable, Sequence


def iid_survival(alpha: float, drafted: int) -> list[float]:
    """Every draft is accepted with probability ``alpha``, independently: alpha, alpha^2, ..."""
    return [alpha ** (k + 1) for k in range(drafted)]


def histogram_survival(histogram: Sequence[int]) -> list[float]:
    """Survival measured by ``histogram[d]`` = blocks that accepted d drafts; ZeroDivisionError if it holds none."""
    blocks = sum(histogram)
    return [sum(histogram[k + 1 :]) / blocks for k in range(len(histogram) - 1)]


def expected_tokens(survival: Sequence[float]) -> float:
    """Tokens a block commits on average: the accepted drafts and the one that the target adds."""
    return 1 + sum(survival)


def autoregressive_draft(cost: float) -> Callable[[int], float]:
    """A drafter that runs once a token: g drafts cost g passes of ``cost`` target passes each."""
    return lambda drafted: drafted * cost


def parallel_draft(cost: float, head: float = 0.0) -> Callable[[int], float]:
    """A block drafter: one pass of ``cost`` whatever the length, and a head of ``head`` a drafted token."""
    return lambda drafted: (cost + drafted * head) if drafted else 0.0


def free_verification(drafted: int) -> float:
    """Verifying costs one target pass, however many positions: memory-bound decoding."""
    return 1.0


def linear_verification(slope: float) -> Callable[[int], float]:
    """Each drafted position adds ``slope`` target passes to the verification."""
    return lambda drafted: 1 + slope * drafted


def speedup(
    survival: Sequence[float],
    draft: Callable[[int], float],
    verify: Callable[[int], float] = free_verification,
) -> float:
    """Tokens a target-pass of time, against one for autoregressive decoding; the length is ``len(survival)``."""
    drafted = len(survival)
    return expected_tokens(survival) / (draft(drafted) + verify(drafted))


def best_length(
    survival: Sequence[float],
    draft: Callable[[int], float],
    verify: Callable[[int], float] = free_verification,
) -> tuple[int, float]:
    """The number of drafted tokens (0 to ``len(survival)``) with the highest speedup, and that speedup."""
    gains = [speedup(survival[:drafted], draft, verify) for drafted in range(len(survival) + 1)]
    best = max(range(len(gains)), key=gains.__getitem__)
    return best, gains[best]

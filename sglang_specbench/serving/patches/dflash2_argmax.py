"""DFlash2 with the argmax proposal at temperature > 0, which SGLang 0.5.23 offers for LiLiCorr and DSpark only.

Exact as for DFlash: the verifier treats the drafts as point masses.
"""

import functools
from collections.abc import Callable
from typing import Any


def with_argmax_selector(original: Callable[..., None]) -> Callable[..., None]:
    """``DFlashWorkerV2.__init__`` that ends with the selector's sampling switched off, before graphs are captured."""

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._selector_sampling_enabled = False
        # The worker would warn that it falls back to greedy verification; it does not (_accept_block samples).
        self._warned_sampling_fallback = True

    return init

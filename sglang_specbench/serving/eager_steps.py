"""Decode and verify steps that ran outside a CUDA graph, counted for target and drafter since the server started.

A batch size that was not captured runs eagerly, head and sampler included, and SGLang mostly says nothing. On a GPU the
counts must stay 0; on a CPU every step counts, which shows that they do.
"""

import functools
from typing import Any

_counts: dict[str, int] = {}


def watch(name: str, runner: Any) -> None:
    """Count the eager steps of model runner ``runner`` under ``name`` from now on; once, however often it is called."""
    if name in _counts:
        return
    _counts[name] = 0
    original = runner.forward

    @functools.wraps(original)
    def forward(forward_batch: Any, *args: Any, **kwargs: Any) -> Any:
        output = original(forward_batch, *args, **kwargs)
        mode = forward_batch.forward_mode
        if (mode.is_decode() or mode.is_target_verify()) and not output.can_run_graph:
            _counts[name] += 1
        return output

    runner.forward = forward


def counts() -> dict[str, int]:
    """``{"target": steps, "draft": steps}``, without the ones that are not watched."""
    return dict(_counts)

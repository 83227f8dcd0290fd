"""The device gates of SGLang's argument resolution, which refuse DFLASH and DSPARK on a CPU by name.

They hold in the process that parses the arguments, long before a scheduler exists.
"""

import functools
from collections.abc import Callable
from typing import Any


class _AsXpu:
    """A resolving view whose ``device`` reads as one that the gate lets pass; all else is the original's."""

    def __init__(self, view: Any) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return "xpu" if name == "device" else getattr(self._view, name)


def without_device_gate(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """``_handle_dflash`` or ``_handle_dspark``, to which the CPU looks like an XPU while they run."""

    @functools.wraps(original)
    def handle(server_args: Any) -> None:
        from sglang.srt.arg_groups import speculative_hook

        view = speculative_hook.resolving_view
        speculative_hook.resolving_view = lambda args: _AsXpu(view(args))
        try:
            original(server_args)
        finally:
            speculative_hook.resolving_view = view

    return handle


def with_torch_native(original: list[str]) -> list[str]:
    """The draft attention backends, with the one that runs on a CPU. The list is shared: extended in place."""
    if "torch_native" not in original:
        original.append("torch_native")
    return original

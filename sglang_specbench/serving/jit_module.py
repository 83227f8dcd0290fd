"""The one CUDA module that a server of the DFLASH family builds when it starts, built without a server.

Run as ``python -m sglang_specbench.serving.jit_module [CAPABILITY]`` under the environment of a server (`toolkit`):
prints ``built`` or why not. With a capability (90 is sm_90) it builds for a card that is not here; such a module cannot
be loaded, so its library is only looked for.
"""

import sys
from typing import Any

import torch

VECTOR, DETERMINISTIC = 4, True  # of a vocabulary that 4 divides, as every target's of ours; SGLang's default


def build(capability: int | None = None) -> str:
    """``built``, or in one line why the module cannot be built."""
    if capability is not None:
        torch.cuda.current_device = lambda: 0
        torch.cuda.get_device_capability = lambda *_: divmod(capability, 10)
    from sglang.kernels.jit.utils.compile import loader
    from sglang.kernels.ops.speculative.sampling import _jit_sampling_module

    loaded = loader._load

    def found_is_enough(path: Any) -> Any:
        return loaded(path) if capability is None else path

    loader._load = found_is_enough
    try:
        _jit_sampling_module(VECTOR, DETERMINISTIC)
    except Exception as error:  # noqa: BLE001 - whatever the tools raise is the answer
        return f"{type(error).__name__}: {' '.join(str(error).split())[-600:]}"
    finally:
        loader._load = loaded
    return "built"


if __name__ == "__main__":
    print(build(int(sys.argv[1]) if len(sys.argv) > 1 else None))

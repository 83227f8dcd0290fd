"""SGLang's own draft modules on this CPU, without a server: imports, one-process topology, no compiler."""

import os
import sys
import warnings
from collections.abc import Iterator
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def sglang_runtime() -> Iterator[None]:
    """SGLang importable without a GPU, with a topology of one published.

    ``sgl_kernel`` is the plugin's stand-in; dynamo is off (the parity is with the formulas, not with a compiler).
    """
    from sglang_specbench.launch import STAND_IN

    sys.path.insert(0, str(STAND_IN))
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"  # read once, at import
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SGLang's own, while it looks for accelerators
            import torch._dynamo
            from sglang.srt.runtime_context import SpawnRanks, get_parallel, publish, reset_context
            from sglang.srt.server_args import ServerArgs

            torch._dynamo.config.disable = True
            publish(ServerArgs(model_path="dummy", device="cpu"), role="test", ranks=SpawnRanks(world_rank=0))
            alone = SimpleNamespace(rank_in_group=0, world_size=1)
            get_parallel().override_permanently(tp_group=alone, attn_tp_group=alone)
            import sglang.srt.models.dflash
            import sglang.srt.models.dspark
            import sglang.srt.models.lilicorr  # noqa: F401
        yield
        reset_context()
        torch._dynamo.config.disable = False
    finally:
        sys.path.remove(str(STAND_IN))
        del os.environ["SGLANG_USE_CPU_ENGINE"]

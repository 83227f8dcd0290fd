"""The attestation of a live scheduler: read from the objects that serve, never from what was asked for.

`attest` runs once, after workers and graphs are built; `runtime_state` on every ``/server_info``, because SGLang can
leave a fast or exact path at run time with no more than one log line.
"""

import functools
from pathlib import Path
from typing import Any

import torch

from sglang_specbench import __version__
from sglang_specbench.arms import ARMS, Arm
from sglang_specbench.attestation import Attestation
from sglang_specbench.digest import weights_digest
from sglang_specbench.launch import ServerConfig
from sglang_specbench.serving import eager_steps
from sglang_specbench.serving.patches.table import arm_patches
from sglang_specbench.serving.patching import APPLIED, PatchError

# attribute of the DFLASH worker, or of an object in it -> what it means when it changes after start
_FLAGS = {
    "_use_triton_prepare_block": "block preparation left its Triton kernel",
    "_use_triton_accept_bonus": "greedy acceptance left its Triton kernel",
    "_use_fused_kv_materialize": "draft KV writes left their fused kernel",
    "_use_triton_compact_rebuild": "the compact draft cache left its Triton kernel",
    "_warned_sampling_fallback": "sampled requests are verified greedily",
    "_warned_lilicorr_eager": "the LiLiCorr head ran outside the captured graph",
    "_sampling_accept_graph.disabled": "DSpark's sampled acceptance left its graph",
}
_EAGER_BY_DESIGN = {"cpu": ("_warned_lilicorr_eager",)}  # no graphs there
_at_start: dict[str, bool] = {}


def attest(scheduler: Any, config: ServerConfig) -> Attestation:
    """What ``scheduler`` serves; `PatchError` (fatal to the server) if the patches were never applied."""
    import sglang

    missing = [patch.name for patch in arm_patches(config) if patch.name not in APPLIED]
    if missing:
        raise PatchError(f"the scheduler built its workers without the patches {', '.join(missing)}")
    runner, worker = scheduler.tp_worker.model_runner, scheduler.draft_worker
    _at_start.update(_flags(worker))
    eager_steps.watch("target", runner)
    if hasattr(worker, "draft_model_runner"):
        eager_steps.watch("draft", worker.draft_model_runner)
    return Attestation(
        plugin_version=__version__,
        sglang_version=sglang.__version__,
        arm=config.arm,
        proposal=_proposal(worker, ARMS[config.arm]),
        device=str(scheduler.device),
        dtype=str(runner.dtype).removeprefix("torch."),
        **_drafter(worker),
        window=int(getattr(worker, "speculative_num_draft_tokens", 1)) if worker else 1,
        graph_sizes=_captured(runner),
        seed=int(scheduler.random_seed),
        target_digest=weights_digest(Path(config.target)),
        draft_digest=weights_digest(Path(config.draft)) if config.draft else "",
        verification=_verification(worker),
        threads=torch.get_num_threads(),
        patches=dict(APPLIED),
    )


def runtime_state(scheduler: Any, config: ServerConfig) -> dict[str, Any]:
    """What may have changed since `attest`: ``downgrades`` (texts), ``verification``, ``threads``, ``eager_steps``."""
    ignored = _EAGER_BY_DESIGN.get(config.device, ())
    changed = [n for n, v in _flags(scheduler.draft_worker).items() if v != _at_start.get(n)]
    eager = {} if config.device == "cpu" else eager_steps.counts()
    left = [f"{n} {name} steps ran outside any CUDA graph" for name, n in eager.items() if n]
    return {
        "downgrades": [*(_FLAGS[name] for name in changed if name not in ignored), *left],
        "eager_steps": eager_steps.counts(),
        "verification": _verification(scheduler.draft_worker),
        "threads": torch.get_num_threads(),
    }


def _flags(worker: Any) -> dict[str, bool]:
    found = {}
    for name in _FLAGS:
        *parents, attribute = name.split(".")
        owner = functools.reduce(lambda value, parent: getattr(value, parent, None), parents, worker)
        if hasattr(owner, attribute):
            found[name] = bool(getattr(owner, attribute))
    return found


def _hooked(runner: Any, sampler: Any) -> bool:
    """True if one of the hooks that ``runner`` ran while it captured calls ``sampler``."""
    cells = (cell for hook in runner.capture_tail_hooks for cell in getattr(hook, "__closure__", None) or ())
    return any(cell.cell_contents is sampler for cell in cells)


def _captured(runner: Any) -> tuple[int, ...]:
    """Batch sizes of the decode (or verify) graphs that a model runner holds, ascending."""
    return tuple(sorted(getattr(runner.decode_cuda_graph_runner, "capture_bs", None) or ()))


def _drafter(worker: Any) -> dict[str, Any]:
    if not hasattr(worker, "draft_model"):  # AR, or a worker without a block head
        return {"worker": type(worker).__name__ if worker else ""}
    sampler = worker._draft_sampler
    pool = getattr(worker, "domino_candidate_pool_size", None)
    runner = worker.draft_model_runner
    graphs = runner.decode_cuda_graph_runner
    return {
        "worker": type(worker).__name__,
        "draft_model": type(worker.draft_model).__name__,
        "head": type(sampler).__name__ if sampler is not None else "",
        "head_folded": sampler is not None and graphs is not None,
        "head_captured": sampler is not None and graphs is not None and _hooked(runner, sampler),
        "draft_graph_sizes": _captured(runner),
        "drafted": int(worker.gamma if hasattr(worker, "gamma") else worker.block_size - 1),
        "candidate_pool": pool if getattr(worker, "_is_domino", False) else None,
    }


def _proposal(worker: Any, arm: Arm) -> str:
    """How a request at temperature > 0 gets its slots, by the switch of whichever head the worker really has."""
    if worker is None:
        return "none"
    for switch in dict.fromkeys(row.switch for row in ARMS.values() if row.switch):
        if getattr(worker, switch.part, None) is not None:
            return "sampled" if bool(getattr(worker, switch.flag)) == switch.sampled else "argmax"
    if arm.switch:
        return f"unknown: the worker has no {arm.switch.part}"
    from sglang.srt.runtime_context import get_spec

    return "sampled" if get_spec().speculative_use_rejection_sampling else "argmax"


def _verification(worker: Any) -> str:
    """``exact``, or the first reason why sampled tokens would not follow the target."""
    if any(name.startswith("test:") for name in APPLIED):
        return "a planted fault of a test"
    if worker is None:
        return "exact"
    from sglang.srt.runtime_context import get_spec
    from sglang.srt.speculative import dflash_utils
    from sglang.srt.speculative.spec_utils import SIMULATE_ACC_LEN

    spec = get_spec()
    if SIMULATE_ACC_LEN > 0:
        return "simulated acceptance (SGLANG_SIMULATE_ACC_LEN)"
    if (spec.speculative_accept_threshold_single, spec.speculative_accept_threshold_acc) != (1.0, 1.0):
        return "acceptance thresholds below 1"
    if type(worker).__name__ == "DFlashWorkerV2" and not dflash_utils.is_dflash_sampling_verify_available():
        return "greedy: no sampling verification on this device"
    return "exact"

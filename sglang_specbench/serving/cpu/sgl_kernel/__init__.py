"""Torch stand-in for the CPU build of ``sgl_kernel``, which is not on PyPI (the wheel there is CUDA only).

Shadows the wheel through PYTHONPATH in CPU servers. The operations that SGLang 0.5.23 calls on a CPU for AR, DFLASH and
DSPARK are written here; every other name is a stub that raises when called. Submodules are not faked (SGLang relies on
their ImportError), and nothing is registered under ``torch.ops.sgl_kernel``, so that its AMX probe stays false and all
fused layers take ``forward_native``. Signatures are those of the call sites. Delete when SGLang publishes a CPU wheel.
"""

import ctypes
from typing import Any

import torch

__version__ = "0.0.0+specbench.cpu"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"sgl_kernel.{name} has no CPU stand-in in sglang-specbench")

    return missing


def assign_req_to_token_pool_cpu(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start: torch.Tensor,
    end: torch.Tensor,
    out_cache_loc: torch.Tensor,
    pool_len: int,
) -> None:
    """Row ``req_pool_indices[i]`` of the table, columns start[i]:end[i], from the next slice of ``out_cache_loc``."""
    taken = 0
    for row, first, last in zip(req_pool_indices.tolist(), start.tolist(), end.tolist(), strict=True):
        req_to_token[row, first:last] = out_cache_loc[taken : taken + last - first].to(req_to_token.dtype)
        taken += last - first


def assign_extend_cache_locs_cpu(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start: torch.Tensor,
    end: torch.Tensor,
    out_cache_loc: torch.Tensor,
    pool_len: int,
) -> None:
    """The inverse: the slots in columns start[i]:end[i] of each row, back to back into ``out_cache_loc``."""
    taken = 0
    for row, first, last in zip(req_pool_indices.tolist(), start.tolist(), end.tolist(), strict=True):
        out_cache_loc[taken : taken + last - first] = req_to_token[row, first:last].to(out_cache_loc.dtype)
        taken += last - first


def copy_all_layer_kv_cache_cpu(
    data_ptrs: torch.Tensor, strides: torch.Tensor, tgt_loc: torch.Tensor, src_loc: torch.Tensor
) -> None:
    """Move cache rows between slots in every layer's buffer, given as address and bytes a row."""
    targets, sources = tgt_loc.tolist(), src_loc.tolist()
    for address, size in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(address + s * size, size) for s in sources]  # read all before writing any
        for target, row in zip(targets, rows, strict=True):
            ctypes.memmove(address + target * size, row, size)

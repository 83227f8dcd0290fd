"""What this machine has, and so which arms run on it. Standard library only: nothing heavy is imported to find out.

Packages are looked up by their metadata and import location, the GPU through ``nvidia-smi``.
"""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from sglang_specbench import SGLANG_VERSION, toolkit
from sglang_specbench.arms import Arm
from sglang_specbench.device import faults, gpus

SERVE_HINT = "pip install 'sglang-specbench[serve]'"
DISK_GB = 12  # SGLang with what it brings is 11 GB
_PACKAGES = ("sglang-specbench", "sglang", "torch", "transformers", "triton", "sglang-kernel", "flashinfer-python")
_UNSUPPLIED = {  # what no sweep can name yet
    "sps_table": "a profiled SPS table, which no sweep can name yet",
    "draft_model": "a small language model as its drafter, which no sweep can name yet",
}
_CPU_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_tile")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Versions are None where a package is absent; ``gpus`` are names with memory, driver and compute capability."""

    python: str
    platform: str
    versions: dict[str, str | None]
    locations: dict[str, str | None]  # import name -> folder
    plugin: str | None  # value of the entry point that SGLang will load
    gpus: tuple[str, ...]
    toolkit: str = ""  # with which a server on a GPU builds a module at start; "" without a GPU
    cpu_flags: tuple[str, ...]
    cores: int
    free_disk_gb: int
    problems: tuple[str, ...] = field(default=())  # why nothing can be served here, with the remedy


def inspect_machine() -> Machine:
    """What is installed and plugged in, now."""
    versions = {name: _version(name) for name in _PACKAGES}
    plugin, found = _plugin(), gpus()
    return Machine(
        python=sys.version.split()[0],
        platform=platform.platform(),
        versions=versions,
        locations={name: _location(name) for name in ("sglang_specbench", "sglang", "torch", "sgl_kernel")},
        plugin=plugin,
        gpus=tuple(map(str, found)),
        toolkit=toolkit.report(os.environ) if found else "",
        cpu_flags=_cpu_flags(),
        cores=len(os.sched_getaffinity(0)),
        free_disk_gb=shutil.disk_usage(Path.cwd()).free >> 30,
        problems=(*_problems(versions, plugin), *faults(found)),
    )


def why_not(arm: Arm, machine: Machine) -> str:
    """Why ``arm`` cannot be served on ``machine``; empty when it can."""
    if machine.problems:
        return machine.problems[0]
    if lacking := unsupplied(arm):
        return lacking
    if "cuda" in arm.needs and not machine.gpus:
        return "needs a CUDA GPU"
    return ""


def unsupplied(arm: Arm) -> str:
    """What ``arm`` needs and no sweep can give it, on any machine; empty for all others."""
    return next((f"not wired: needs {text}" for need, text in _UNSUPPLIED.items() if need in arm.needs), "")


def _problems(versions: dict[str, str | None], plugin: str | None) -> list[str]:
    problems = []
    if versions["sglang"] is None:
        problems.append(f"SGLang is not installed: {SERVE_HINT}")
    elif versions["sglang"] != SGLANG_VERSION:
        problems.append(f"SGLang {versions['sglang']} is not {SGLANG_VERSION}, the pinned one: {SERVE_HINT}")
    if plugin is None:
        problems.append("no entry point sglang.srt.plugins/specbench: install this package, not only its folder")
    return problems


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _location(name: str) -> str | None:
    spec = importlib.util.find_spec(name)
    return str(Path(spec.origin).parent) if spec and spec.origin else None


def _plugin() -> str | None:
    found = importlib.metadata.entry_points(group="sglang.srt.plugins", name="specbench")
    return next((entry.value for entry in found), None)


def _cpu_flags() -> tuple[str, ...]:
    path = Path("/proc/cpuinfo")
    words = set(path.read_text().split()) if path.is_file() else set()
    return tuple(flag for flag in _CPU_FLAGS if flag in words)

"""The one answer to "is there a GPU that a server could use, and which": asked of the driver, through nvidia-smi.

Standard library only. A driver tool without a device, and an empty CUDA_VISIBLE_DEVICES, both mean that there is none.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass

from sglang_specbench.errors import UserError

_QUERY = ("name", "memory.total", "driver_version", "compute_cap")
HOPPER, AMPERE = 90, 80
DRIVER = (
    580  # NVIDIA's CUDA 13.0 release notes, table 2: the oldest driver branch that runs it; torch and nvcc are cu13
)
FA3_CAPABILITIES = range(80, 91)  # SGLang 0.5.23, layers/attention/attention_registry.py: "requires SM>=80 and SM<=90"


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One device as the driver names it."""

    index: int  # the driver's
    name: str
    memory: str  # "81559 MiB"
    driver: str
    capability: int  # 90 is compute capability 9.0

    def __str__(self) -> str:
        return f"{self.name}, {self.memory}, driver {self.driver}, sm_{self.capability}"


def gpus() -> tuple[Gpu, ...]:
    """The devices that a process started here may use, in the driver's order."""
    found = [gpu for i, line in enumerate(_lines()) if (gpu := _parse(i, line)) is not None]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return tuple(found)
    names = [part.strip() for part in visible.split(",") if part.strip()]
    if not all(name.isdigit() for name in names):  # UUIDs, or -1, which ends the list
        return () if not names or names[0] == "-1" else tuple(found[: len(names)])
    return tuple(gpu for gpu in found if str(gpu.index) in names)


def detect_device() -> str:
    """``cuda`` where `gpus` finds one, else ``cpu``."""
    return "cuda" if gpus() else "cpu"


def dtype_on(device: str, asked: str) -> str:
    """``asked``, or for ``auto`` bfloat16 on a GPU and float32 on a CPU, where greedy outputs must be equal."""
    return asked if asked != "auto" else {"cuda": "bfloat16", "cpu": "float32"}[device]


def require(device: str, where: str = "--device") -> None:
    """`UserError` naming ``where`` if ``device`` is cuda and this machine has no GPU."""
    if device == "cuda" and not gpus():
        raise UserError(f"{where} cuda: nvidia-smi finds no GPU that may be used", "see specbench doctor")


def capability() -> int:
    """Compute capability of the first GPU, times ten; Hopper's where there is none, for plans made elsewhere."""
    found = gpus()
    return found[0].capability if found else HOPPER


def attention_backend(capability: int) -> str:
    """``fa3`` where SGLang allows it, else flashinfer, which target and drafts share on every other card.

    SGLang's own choice on Blackwell (trtllm_mha) needs pages of 16 tokens and more; ours have one.
    """
    return "fa3" if capability in FA3_CAPABILITIES else "flashinfer"


def faults(found: tuple[Gpu, ...]) -> list[str]:
    """Why servers cannot use the GPUs ``found``; empty when they can."""
    wrong = []
    for gpu in found:
        major = gpu.driver.partition(".")[0]
        if major.isdigit() and int(major) < DRIVER:
            wrong.append(f"driver {gpu.driver} of {gpu.name} is older than {DRIVER}, the first for CUDA 13: update it")
        if 0 < gpu.capability < AMPERE:
            wrong.append(
                f"{gpu.name} is sm_{gpu.capability}: SGLang's attention in bfloat16 needs sm_{AMPERE} or newer"
            )
    return list(dict.fromkeys(wrong))


def _lines() -> list[str]:
    command = ("nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader")
    if shutil.which(command[0]) is None:
        return []
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def _parse(index: int, line: str) -> Gpu | None:
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != len(_QUERY):  # "No devices were found"
        return None
    major, _, minor = parts[3].partition(".")
    capability = int(major) * 10 + int(minor) if major.isdigit() and minor.isdigit() else 0
    return Gpu(index=index, name=parts[0], memory=parts[1], driver=parts[2], capability=capability)

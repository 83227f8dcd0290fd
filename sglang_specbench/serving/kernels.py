"""Our Triton kernels compiled for cards that are not here, with what each takes of the card.

The interpreter, in which the CPU tests run the kernels, skips the compiler; a kernel that it accepts may still be
refused on a GPU. Compiling needs no GPU: Triton brings its own ptxas, which also says how many bytes are spilled.
"""

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from sglang_specbench.serving.patches import lilicorr_exact

CAPABILITIES = (90, 100)  # Hopper (H100, H200), Blackwell (B200)


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel as it is launched: types of its arguments, its constants at the paper's sizes, its warps."""

    function: Any
    signature: Mapping[str, str]
    constants: Mapping[str, int]
    warps: int


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What ptxas says of one kernel; bytes are those of one program (shared) and of one thread (spills)."""

    name: str
    capability: int
    shared_bytes: int
    registers: int
    spilled_bytes: int


KERNELS = (
    Kernel(
        function=lilicorr_exact._exact_path_kernel,
        signature={
            "start_ptr": "*fp32",
            "pair_ptr": "*fp32",
            "cand_ptr": "*i64",
            "back_ptr": "*i32",
            "token_ptr": "*i64",
            "mass_ptr": "*fp32",
            "slots": "constexpr",
            "K": "constexpr",
        },
        constants={"slots": 15, "K": 8},
        warps=1,
    ),
)


def compile_kernel(kernel: Kernel, capability: int) -> Compiled:
    """Compile ``kernel`` for compute capability ``capability`` (90 is sm_90).

    Raises triton's ``CompilationError`` where the compiler refuses the source, `subprocess.CalledProcessError` where
    ptxas refuses the assembly.
    """
    source = ASTSource(kernel.function, signature=dict(kernel.signature), constexprs=dict(kernel.constants))
    target = GPUTarget("cuda", capability, 32)
    binary = triton.compile(source, target=target, options={"num_warps": kernel.warps})
    said = _assemble(binary.asm["ptx"], capability)
    stores, loads = re.findall(r"(\d+) bytes spill", said)
    return Compiled(
        name=kernel.function.__name__,
        capability=capability,
        shared_bytes=int(binary.metadata.shared),
        registers=int(re.findall(r"Used (\d+) registers", said)[0]),
        spilled_bytes=int(stores) + int(loads),
    )


def _assemble(ptx: str, capability: int) -> str:
    """What ``ptxas -v`` prints for one kernel."""
    from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        command = [
            get_ptxas(capability).path,
            "-v",
            f"--gpu-name={sm_arch_from_capability(capability)}",
            str(path),
            "-o",
            str(path.with_suffix(".cubin")),
        ]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr

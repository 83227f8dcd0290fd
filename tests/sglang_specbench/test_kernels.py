"""Each of our Triton kernels is compiled for the cards that it will run on; no GPU is needed for that."""

import ast
from pathlib import Path

import pytest

import sglang_specbench

pytestmark = [pytest.mark.torch, pytest.mark.slow]
pytest.importorskip("triton")
from sglang_specbench.serving.kernels import CAPABILITIES, KERNELS, Kernel, compile_kernel  # noqa: E402

SHARED_OF_A_BLOCK = 48 << 10  # what a kernel gets on any card without asking for more


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.function.__name__)
def test_compiles_without_spills(kernel: Kernel, capability: int, record_property) -> None:
    compiled = compile_kernel(kernel, capability)
    record_property("compiled", str(compiled))
    print(compiled)
    assert compiled.registers > 0
    assert compiled.spilled_bytes == 0
    assert compiled.shared_bytes <= SHARED_OF_A_BLOCK


def test_every_kernel_of_the_package_is_listed() -> None:
    """A kernel is a function under ``@triton.jit``; its annotations may only be ``tl.constexpr``."""
    found = {}
    for path in Path(sglang_specbench.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and "triton.jit" in map(ast.unparse, node.decorator_list):
                found[node.name] = {ast.unparse(a.annotation) for a in node.args.args if a.annotation}
    assert set(found) == {kernel.function.__name__ for kernel in KERNELS}
    assert set().union(*found.values()) <= {"tl.constexpr"}

"""The torch stand-in for sgl_kernel against loops over plain lists."""

import importlib.util
from types import ModuleType
from typing import Any

import pytest

from sglang_specbench.launch import STAND_IN

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    """Loaded from its file: the name ``sgl_kernel`` belongs to the installed wheel in this process."""
    spec = importlib.util.spec_from_file_location("stand_in", STAND_IN / "sgl_kernel" / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ROWS, START, END = [2, 0, 3], [1, 0, 5], [4, 2, 5]  # the last request has nothing to write


def tensors(*values: list[int]) -> list[Any]:
    return [torch.tensor(v) for v in values]


def test_table_rows_are_filled_from_the_slots_in_order(kernels: ModuleType) -> None:
    table = torch.zeros(4, 8, dtype=torch.int32)
    slots = torch.tensor([11, 12, 13, 14, 15])
    kernels.assign_req_to_token_pool_cpu(*tensors(ROWS)[:1], table, *tensors(START, END), slots, 8)
    wanted = [[0] * 8 for _ in range(4)]
    taken = iter(slots.tolist())
    for row, first, last in zip(ROWS, START, END, strict=True):
        for column in range(first, last):
            wanted[row][column] = next(taken)
    assert table.tolist() == wanted


def test_gather_is_the_inverse(kernels: ModuleType) -> None:
    table = torch.arange(32, dtype=torch.int32).view(4, 8)
    found = torch.full((5,), -1)
    kernels.assign_extend_cache_locs_cpu(*tensors(ROWS)[:1], table, *tensors(START, END), found, 8)
    wanted = [int(table[r, c]) for r, s, e in zip(ROWS, START, END, strict=True) for c in range(s, e)]
    assert found.tolist() == wanted


def test_cache_rows_move_even_where_source_and_target_overlap(kernels: ModuleType) -> None:
    layers = [torch.arange(12.0).view(6, 2).contiguous(), torch.arange(18).view(6, 3).contiguous()]
    wanted = []
    for layer in layers:
        rows = layer.tolist()
        copied = [list(rows[s]) for s in (1, 2, 3)]
        for target, row in zip((2, 3, 4), copied, strict=True):
            rows[target] = row
        wanted.append(rows)
    pointers = torch.tensor([layer.data_ptr() for layer in layers])
    strides = torch.tensor([layer.stride(0) * layer.element_size() for layer in layers])
    kernels.copy_all_layer_kv_cache_cpu(pointers, strides, *tensors([2, 3, 4], [1, 2, 3]))
    assert [layer.tolist() for layer in layers] == wanted


def test_anything_else_raises_when_called_and_submodules_are_not_faked(kernels: ModuleType) -> None:
    with pytest.raises(NotImplementedError, match="verify_tree_greedy_cpu"):
        kernels.verify_tree_greedy_cpu()
    with pytest.raises(AttributeError):
        _ = kernels.__path_of_nothing__

"""The head benchmark: small sizes on a CPU, nothing imported but torch and Triton, the paper's numbers as printed."""

import csv
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.torch


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import head_latency

    return head_latency


def test_every_arm_has_a_time_and_a_cost_over_dflash(bench):
    pytest.importorskip("triton")
    lines = bench.bench("cpu", small=True, size=(5, 1, 1))
    assert [line.arm for line in lines] == list(bench.ARMS)
    assert all(0 < line.time_ms[1] <= line.time_ms[0] <= line.time_ms[2] for line in lines)
    assert [line.arm for line in lines if line.cost_ms is None] == ["dflash"]
    table = bench.written(lines, "cpu").splitlines()
    assert len(table) == 4 + len(bench.ARMS)


def test_the_papers_numbers_are_those_of_the_shipped_table(bench):
    names = {"DFlash2": "dflash2", "LiLiCorr": "lilicorr", "LiLiCorr + conv": "lilicorr-conv", "Domino": "domino",
             "DSpark": "dspark"}  # fmt: skip
    with (ROOT / "harness/paper/printed/table03_head_cost.csv").open() as file:
        printed = {(row["target"], names[row["arm"]]): float(row["head_ms"]) for row in csv.DictReader(file)}
    ours = {(t, arm): ms[i] for arm, ms in bench.PAPER.items() for i, t in enumerate(bench.GEOMETRIES)}
    assert ours == printed


def test_the_interval_is_that_of_the_binomial(bench):
    """n = 100: ranks 41 to 60 cover the median in 94.3 % of samples, 40 to 61 in 96.5 %; ours may not be narrower."""
    value, low, high = bench.median([float(i) for i in range(1, 101)])
    assert value == statistics.median(range(1, 101))
    assert (low, high) == (41.0, 61.0)


def test_a_kernel_path_is_the_reference_path(bench):
    import torch

    draw = torch.Generator().manual_seed(0)
    start, pair = torch.randn(3, 8, generator=draw), torch.randn(3, 14, 8, 8, generator=draw)
    assert bench.kernel_path(start, pair).tolist() == bench.best_path(start, pair).tolist()


def test_it_needs_torch_and_triton_alone():
    """On an empty GPU machine there is nothing else."""
    code = (
        "import sys; sys.path.insert(0, 'bench'); "
        "[sys.modules.__setitem__(name, None) for name in "
        "('sglang', 'transformers', 'safetensors', 'typer', 'rich', 'pandas', 'scipy', 'pyarrow', 'aiohttp')]; "
        "import head_latency"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

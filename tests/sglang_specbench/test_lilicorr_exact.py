"""The exact path of a lattice against all of its paths."""

import itertools
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
from sglang_specbench.serving.patches.lilicorr_exact import exact_path, exact_path_torch  # noqa: E402

B, S, K = 3, 4, 4


def lattice(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    start, pair = torch.randn(B, K, generator=draw), torch.randn(B, S - 1, K, K, generator=draw)
    return start, pair, torch.randint(0, 1000, (B, S, K), generator=draw)


@pytest.mark.parametrize("seed", range(8))
def test_best_of_all_paths(seed: int) -> None:
    start, pair, candidates = lattice(seed)
    tokens, mass = exact_path_torch(start, pair, candidates)
    for b in range(B):
        best = max(
            itertools.product(range(K), repeat=S),
            key=lambda c: float(start[b, c[0]] + sum(pair[b, s, c[s], c[s + 1]] for s in range(S - 1))),
        )
        assert tokens[b].tolist() == [int(candidates[b, s, best[s]]) for s in range(S)]
        assert mass[b].argmax(1).tolist() == list(best)
        assert mass[b].sum(1).tolist() == [1.0] * S


def test_differs_from_the_greedy_walk_where_greed_is_punished() -> None:
    start = torch.tensor([[1.0, 0.9]])
    pair = torch.tensor([[[[0.0, 0.0], [5.0, 0.0]]]])
    tokens, _ = exact_path(start, pair, torch.tensor([[[10, 11], [20, 21]]]), None, None, None)
    assert tokens.tolist() == [[11, 20]]  # greedy takes 10, which scores 1.0 against 5.9


_KERNEL = """
import torch
from sglang_specbench.serving.patches import lilicorr_exact as path
for seed in range(3):
    draw = torch.Generator().manual_seed(seed)
    start, pair = torch.randn(3, 8, generator=draw), torch.randn(3, 14, 8, 8, generator=draw)
    candidates = torch.randint(0, 1000, (3, 15, 8), generator=draw)
    lattice = start, pair, candidates
    for got, want in zip(path._exact_path_triton(*lattice), path.exact_path_torch(*lattice)):
        assert torch.equal(got, want), seed
"""


@pytest.mark.slow
def test_kernel_equals_torch_in_the_triton_interpreter() -> None:
    env = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", _KERNEL], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

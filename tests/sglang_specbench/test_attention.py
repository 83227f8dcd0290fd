"""Verify attention against softmax written out, one query at a time."""

from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
from sglang_specbench.serving.patches.attention import block_attention, query_lengths, verify_mask  # noqa: E402

H, G, D = 4, 2, 8


def written_out(q: Any, k: Any, v: Any, p: int, *, causal: bool, window: int) -> Any:
    """float64, a loop over queries, heads and keys; no mask tensor."""
    rows = []
    for i in range(q.shape[0]):
        at = p + i
        last = at if causal else k.shape[0] - 1
        first = max(0, at - window) if window >= 0 else 0
        heads = []
        for h in range(H):
            g = h // (H // G)
            scores = (k[first : last + 1, g].double() @ q[i, h].double()) * D**-0.5
            heads.append(scores.softmax(0) @ v[first : last + 1, g].double())
        rows.append(torch.stack(heads))
    return torch.stack(rows)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [-1, 0, 3, 100])
@pytest.mark.parametrize(("p", "n"), [(0, 1), (0, 5), (7, 1), (7, 5)])
def test_block_attention(p: int, n: int, window: int, causal: bool) -> None:
    draw = torch.Generator().manual_seed(p + n)
    q, k, v = (torch.randn(s, generator=draw) for s in ((n, H, D), (p + n, G, D), (p + n, G, D)))
    found = block_attention(q, k, v, verify_mask(p, n, causal=causal, window=window), D**-0.5)
    wanted = written_out(q, k, v, p, causal=causal, window=window)
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=1e-5)


def test_query_lengths_are_equal_blocks_or_the_ragged_layout() -> None:
    equal = SimpleNamespace(batch_size=3, spec_info=SimpleNamespace())
    layout = SimpleNamespace(verify_lens=torch.tensor([4, 1, 2]))
    ragged = SimpleNamespace(batch_size=3, spec_info=SimpleNamespace(ragged_verify_layout=layout))
    assert query_lengths(equal, 48) == [16, 16, 16]
    assert query_lengths(ragged, 7) == [4, 1, 2]

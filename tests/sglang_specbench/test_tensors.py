"""The small torch equivalents against formulas written out."""

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
from sglang_specbench.serving.patches import tensors  # noqa: E402


def test_qk_norm_rope_rotates_q_and_k_and_leaves_v() -> None:
    draw = torch.Generator().manual_seed(0)
    n, q_heads, k_heads, d, eps = 3, 4, 2, 8, 1e-6
    qkv = torch.randn(n, (q_heads + 2 * k_heads) * d, generator=draw)
    before = qkv.clone().double()
    q_weight, k_weight = torch.rand(d, generator=draw), torch.rand(d, generator=draw)
    positions = torch.tensor([0, 5, 9])
    angle = torch.arange(16)[:, None] / 10000.0 ** (torch.arange(d // 2) / (d // 2))
    table = torch.cat([angle.cos(), angle.sin()], dim=1)
    tensors.qk_norm_rope_(qkv, positions, q_weight, k_weight, table, q_heads, k_heads, d, eps)
    for t in range(n):
        for h in range(q_heads + k_heads):
            x = before[t, h * d : (h + 1) * d]
            x = x / (x.pow(2).mean() + eps).sqrt() * (q_weight if h < q_heads else k_weight).double()
            turned = torch.complex(x[: d // 2], x[d // 2 :]) * torch.polar(
                torch.ones(d // 2, dtype=torch.double), angle[positions[t]].double()
            )
            found = qkv[t, h * d : (h + 1) * d].double()
            torch.testing.assert_close(found, torch.cat([turned.real, turned.imag]), atol=1e-5, rtol=1e-5)
    assert torch.equal(qkv[:, (q_heads + k_heads) * d :].double(), before[:, (q_heads + k_heads) * d :])


def test_topk_is_sorted() -> None:
    values, ids = tensors.torch_topk(torch.tensor([[0.1, 3.0, 2.0, 5.0]]), 3)
    assert values.tolist() == [[5.0, 3.0, 2.0]]
    assert ids.tolist() == [[3, 1, 2]]


def test_record_stream_is_silent_for_cpu_tensors() -> None:
    def original(self: object, stream: object) -> None:
        raise AssertionError("called for a CPU tensor")

    tensors.without_streams(original)(torch.zeros(1), None)


def test_domino_still_wants_one_vocabulary() -> None:
    tensors.domino_gate(target_vocab_size=5, draft_vocab_size=5)
    with pytest.raises(ValueError, match="one vocabulary"):
        tensors.domino_gate(target_vocab_size=5, draft_vocab_size=6)

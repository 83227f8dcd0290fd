"""Losses over a vocabulary: the frozen head's written-out gradient is autograd's, in one chunk and in several."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch.nn.functional import cross_entropy  # noqa: E402

from drafters.model import crossentropy  # noqa: E402


@pytest.mark.parametrize("rows", [3, 100])
def test_a_frozen_heads_loss_and_gradient_are_those_of_autograd(rows, monkeypatch):
    monkeypatch.setattr(crossentropy, "_ROWS", rows)
    torch.manual_seed(0)
    h, head = torch.randn(10, 6, dtype=torch.float64, requires_grad=True), torch.randn(20, 6, dtype=torch.float64)
    gold, weight = torch.randint(20, (10,)), torch.rand(10, dtype=torch.float64)
    loss, right = crossentropy.frozen_head_loss(h, head, gold)
    (gradient,) = torch.autograd.grad((loss * weight).sum(), h)
    expected = cross_entropy(h @ head.T, gold, reduction="none")
    assert torch.allclose(loss, expected)
    assert torch.allclose(gradient, torch.autograd.grad((expected * weight).sum(), h)[0])
    assert torch.equal(right, (h @ head.T).argmax(-1) == gold)

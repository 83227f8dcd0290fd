"""RMSNorm: Qwen3's values in every precision, and a written-out gradient that equals the numeric one."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm  # noqa: E402

from drafters.model.norm import RMSNorm  # noqa: E402


def pair(dtype):
    torch.manual_seed(0)
    ours, theirs = RMSNorm(12, 1e-6).to(dtype), Qwen3RMSNorm(12, 1e-6).to(dtype)
    torch.nn.init.normal_(ours.weight)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs, torch.randn(3, 5, 12, dtype=dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 0.02)])
def test_it_is_qwen3s(dtype, tolerance):
    ours, theirs, x = pair(dtype)
    assert torch.allclose(ours(x), theirs(x), rtol=tolerance, atol=tolerance)
    assert ours(x).dtype == dtype


def test_its_gradient_is_the_numeric_one():
    ours, _, x = pair(torch.float64)
    assert torch.autograd.gradcheck(ours, (x.requires_grad_(),))
    assert torch.autograd.gradcheck(lambda w: torch.func.functional_call(ours, {"weight": w}, (x,)), (ours.weight,))

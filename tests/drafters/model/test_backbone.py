"""Attention's forms against one dense table, and packed blocks against each block alone."""

import warnings

import pytest
import torch
from torch import Tensor

from drafters.model import attention
from drafters.model.attention import dense_mask, flex, two_part
from drafters.model.blocks import Blocks
from tests.drafters.models import H, tiny_drafter

pytestmark = pytest.mark.torch
Q, K, E = 4, 2, 8


def inputs(seed: int = 0, S: int = 20, R: int = 5, device: str = "cpu") -> tuple[Tensor, list[Tensor], Blocks]:
    """Two sequences of three blocks; anchors at the very start, in the middle and at the end."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(2, 3, R, Q, E), (2, S, K, E), (2, S, K, E), (2, 3, R, K, E), (2, 3, R, K, E)]
    q, *rest = (torch.randn(*shape, generator=generator).to(device) for shape in shapes)
    return q, rest, Blocks(torch.tensor([[0, 4, 20], [7, 7, 1]], device=device), R, S)


def dense(q: Tensor, rest: list[Tensor], blocks: Blocks) -> Tensor:
    """Softmax over everything that `dense_mask` allows, in float64."""
    ck, cv, k, v = (x.double() for x in rest)
    keys, values = torch.cat([ck, k.flatten(1, 2)], 1), torch.cat([cv, v.flatten(1, 2)], 1)
    keys, values = (x.repeat_interleave(Q // K, 2) for x in (keys, values))
    scores = torch.einsum("bqhe,bkhe->bhqk", q.double().flatten(1, 2), keys) / E**0.5
    scores = scores.masked_fill(~dense_mask(blocks)[:, None], float("-inf"))
    return torch.einsum("bhqk,bkhe->bqhe", scores.softmax(-1), values).unflatten(1, q.shape[1:3])


def test_dense_mask_is_the_rule() -> None:
    """Strictly before the anchor, and the own block both ways; written out key by key."""
    _, _, blocks = inputs()
    mask = dense_mask(blocks)
    for b in range(2):
        for query in range(3 * 5):
            block = query // 5
            context = [t < int(blocks.anchor_BN[b, block]) for t in range(20)]
            own = [key // 5 == block for key in range(15)]
            assert mask[b, query].tolist() == context + own


def test_two_part_equals_dense() -> None:
    q, rest, blocks = inputs()
    out = two_part(q, (rest[0], rest[1]), (rest[2], rest[3]), blocks)
    torch.testing.assert_close(out.double(), dense(q, rest, blocks), rtol=0, atol=1e-6)


def test_flex_equals_dense_without_its_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mask and layout on a CPU, with the kernel's plain form (which warns that it is slow)."""
    from torch.nn.attention.flex_attention import flex_attention

    monkeypatch.setattr(attention, "_compiled_flex", lambda: flex_attention)
    q, rest, blocks = inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = flex(q, (rest[0], rest[1]), (rest[2], rest[3]), blocks)
    torch.testing.assert_close(out.double(), dense(q, rest, blocks), rtol=0, atol=1e-5)


@pytest.mark.gpu
def test_flex_equals_dense() -> None:
    q, rest, blocks = inputs(S=200, R=16, device="cuda")
    out = flex(q, (rest[0], rest[1]), (rest[2], rest[3]), blocks)
    torch.testing.assert_close(out.double(), dense(q, rest, blocks), rtol=0, atol=5e-3)


@pytest.mark.parametrize("arm", ["dflash", "dspark", "lilicorr-conv"])
@torch.no_grad()
def test_packed_blocks_equal_each_alone(arm: str) -> None:
    """Neither another block, nor a later position, nor (with a convolution) a neighbour's row leaks in."""
    drafter = tiny_drafter(arm)
    rows, generator = drafter.config.rows, torch.Generator().manual_seed(3)
    features_BSF = torch.randn(2, 30, len(drafter.config.target_layer_ids) * H, generator=generator)
    x_BNRH = torch.randn(2, 3, rows, H, generator=generator)
    anchor_BN = torch.tensor([[2, 9, 30], [1, 5, 11]])
    packed = drafter.backbone(x_BNRH, drafter.context(features_BSF), Blocks(anchor_BN, rows, 30))
    for b in range(2):
        for n in range(3):
            anchor = int(anchor_BN[b, n])
            context = drafter.context(features_BSF[b : b + 1, :anchor])
            alone = drafter.backbone(
                x_BNRH[b : b + 1, n : n + 1], context, Blocks(torch.tensor([[anchor]]), rows, anchor)
            )
            torch.testing.assert_close(packed[b, n], alone[0, 0], rtol=0, atol=1e-5)


@torch.no_grad()
def test_padded_blocks_are_finite() -> None:
    """A padded block has anchor 0 and so no context: its rows still see their block, and no NaN can spread."""
    drafter = tiny_drafter("dflash")
    x_BNRH = torch.randn(1, 1, 16, H)
    context_BSH = torch.randn(1, 8, H)
    assert drafter.backbone(x_BNRH, context_BSH, Blocks(torch.tensor([[0]]), 16, 8)).isfinite().all()

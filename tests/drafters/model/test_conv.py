"""The grouped convolution against its sum, written out channel by channel; the first rows see nothing before them."""

import pytest
import torch

from drafters.model.conv import GroupedConv, convolve
from tests.drafters.models import randomise

pytestmark = pytest.mark.torch
ROWS, WIDTH, TAPS, GROUP = 5, 6, 3, 2


def test_convolve_is_the_sum() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, ROWS, WIDTH, generator=generator)
    base = torch.randn(TAPS, WIDTH, generator=generator)
    delta = torch.randn(2, ROWS, TAPS, WIDTH // GROUP, generator=generator)
    out = convolve(x, base, delta)
    for block in range(2):
        for row in range(ROWS):
            for channel in range(WIDTH):
                taps = range(min(TAPS, row + 1))
                terms = [
                    (base[t, channel] + delta[block, row, t, channel // GROUP]) * x[block, row - t, channel]
                    for t in taps
                ]
                assert float(out[block, row, channel]) == pytest.approx(float(sum(terms)), abs=1e-5)


@torch.no_grad()
def test_both_sides_take_their_coefficients_from_the_input() -> None:
    conv = GroupedConv(WIDTH, TAPS, GROUP)
    randomise(conv, 1)
    x, z = torch.randn(2, 1, ROWS, WIDTH, generator=torch.Generator().manual_seed(2))
    delta = conv.kernel_projection(x).unflatten(-1, (2, TAPS, WIDTH // GROUP))
    before, after = conv.prepare(x)
    torch.testing.assert_close(before, convolve(x, conv.base_kernel[0], delta[..., 0, :, :]))
    torch.testing.assert_close(conv.finish(z, after), convolve(z, conv.base_kernel[1], delta[..., 1, :, :]))


@torch.no_grad()
def test_starts_as_the_identity() -> None:
    x, conv = torch.randn(2, ROWS, WIDTH), GroupedConv(WIDTH, TAPS, GROUP)
    before, after = conv.prepare(x)
    assert torch.equal(before, x)
    assert torch.equal(conv.finish(x, after), x)

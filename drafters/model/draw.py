"""One token from a distribution, by a coin that the caller brings: whoever samples here does it in this way."""

import torch
from torch import Tensor


def draw(p: Tensor, coin: Tensor) -> Tensor:
    """Inverse-CDF draw over the last axis: p [..., V] (need not be normalised), coin [...] -> token [...]."""
    cdf = p.cumsum(-1)
    return torch.searchsorted(cdf, (coin * cdf[..., -1]).unsqueeze(-1), right=True).squeeze(-1)

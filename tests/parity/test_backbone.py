"""The backbone against SGLang's model built from our config.json and tensors, for every checkpoint."""

import pytest
import torch

from drafters.model.blocks import Blocks
from drafters.model.registry import DRAFTERS
from tests.drafters.models import H, tiny_drafter
from tests.parity.served import served_hidden, served_model

pytestmark = [pytest.mark.torch, pytest.mark.sglang, pytest.mark.usefixtures("sglang_runtime")]


@pytest.mark.parametrize("arm", DRAFTERS)
def test_hidden_states(arm: str) -> None:
    drafter = tiny_drafter(arm)
    config, generator = drafter.config, torch.Generator().manual_seed(2)
    features_SF = torch.randn(21, len(config.target_layer_ids) * H, generator=generator)
    embedded_RH = torch.randn(config.rows, H, generator=generator)
    served_RH, served_SH = served_hidden(served_model(drafter), features_SF, embedded_RH)
    with torch.no_grad():
        context_1SH = drafter.context(features_SF[None])
        h_11RH = drafter.backbone(embedded_RH[None, None], context_1SH, Blocks(torch.tensor([[21]]), config.rows, 21))
    torch.testing.assert_close(context_1SH[0], served_SH, rtol=0, atol=1e-5)
    torch.testing.assert_close(h_11RH[0, 0], served_RH, rtol=0, atol=1e-5)


def test_rope_theta_is_served() -> None:
    """The value that config.json carries must be the one SGLang turns with (absent, it would be 10000)."""
    drafter = tiny_drafter("dflash", rope_theta=1e6)
    from sglang.srt.utils.hf_transformers_utils import get_rope_config
    from transformers import Qwen3Config

    assert get_rope_config(Qwen3Config(**drafter.config.to_json()))[0] == 1e6

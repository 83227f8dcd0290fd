"""config.json as SGLang reads it, parameters under SGLang's names, and the sizes that the paper states."""

from pathlib import Path

import pytest
import torch

from drafters.checkpoints.check import check
from drafters.checkpoints.export import save
from drafters.model.config import DrafterConfig, default_layer_ids
from drafters.model.drafter import build, load
from drafters.model.registry import DRAFTERS, load_recipe, package
from drafters.model.tensor_shapes import expected, head_parameters
from sglang_specbench.errors import UserError
from tests.drafters.models import MASK, TARGET, tiny_config, tiny_drafter

pytestmark = pytest.mark.torch
QWEN3 = {
    "Qwen3-8B": {"hidden_size": 4096, "intermediate_size": 12288},
    "Qwen3-4B": {"hidden_size": 2560, "intermediate_size": 9728},
}
PAPER = {
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rms_norm_eps": 1e-6,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "rope_theta": 1e6,
}


def paper_config(arm: str, target: str) -> DrafterConfig:
    model = load_recipe(arm).model
    return DrafterConfig.from_target({**PAPER, **QWEN3[target]}, arm, mask_token_id=151669, **model)


def parameters(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(("target", "head"), [("Qwen3-8B", 36_758_794), ("Qwen3-4B", 32_040_202)])
def test_lilicorr_head_has_the_papers_size(target: str, head: int) -> None:
    """Table 4: 36.76M and 32.04M."""
    with torch.device("meta"):
        drafter = build(paper_config("lilicorr", target))
    assert parameters(drafter.head) == head


@pytest.mark.parametrize("arm", DRAFTERS)
def test_paper_scale_tensors(arm: str) -> None:
    """Names and shapes that SGLang's loaders want (written down independently in `keys`), 15 drafted tokens each."""
    config = paper_config(arm, "Qwen3-8B")
    with torch.device("meta"):
        drafter = build(config)
    assert {name: tuple(t.shape) for name, t in drafter.state_dict().items()} == expected(config.to_json())
    assert config.drafted == 15
    assert config.target_layer_ids == (1, 9, 17, 25, 33)
    assert 1.04e9 < parameters(drafter.backbone) < 1.10e9


@pytest.mark.parametrize("arm", DRAFTERS)
def test_an_exported_checkpoint_is_clean_and_loads_back(arm: str, tmp_path: Path) -> None:
    drafter = tiny_drafter(arm)
    save(tmp_path / arm, drafter.config.to_json(), drafter.state_dict())
    assert check(tmp_path / arm) == []
    again = load(drafter.config.to_json(), drafter.state_dict())
    assert again.config == drafter.config
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, drafter.state_dict()[name]), name


@pytest.mark.parametrize("arm", DRAFTERS)
def test_json_round_trip(arm: str) -> None:
    config = tiny_config(arm)
    assert DrafterConfig.from_json(config.to_json()) == config


def test_a_missing_tensor_is_named() -> None:
    drafter = tiny_drafter("domino")
    tensors = drafter.state_dict()
    del tensors["prefix_gru.weight_hh_l0"]
    with pytest.raises(RuntimeError, match=r"prefix_gru\.weight_hh_l0"):
        load(drafter.config.to_json(), tensors)


def test_wrong_configs_are_refused() -> None:
    with pytest.raises(UserError, match=r"unknown model setting 'markov_rnk'.*markov_rank"):
        tiny_config("dspark", markov_rnk=3)
    with pytest.raises(UserError, match="unknown drafter 'dflash3'"):
        package("dflash3")
    with pytest.raises(UserError, match="no row of the embedding: name one below 96"):
        DrafterConfig.from_target(TARGET, "dflash", mask_token_id=96)
    with pytest.raises(UserError, match="captures no layer after 3: name layers up to it"):
        tiny_config("dflash", target_layer_ids=(1, 4))
    with pytest.raises(UserError, match="write both or none"):
        tiny_config("dflash", conv_kernel_size=2)
    with pytest.raises(UserError, match="no rope_theta"):
        DrafterConfig.from_target({k: v for k, v in TARGET.items() if k != "rope_theta"}, "dflash", mask_token_id=MASK)


def test_lilicorr_keys_have_no_defaults_in_a_checkpoint() -> None:
    config = tiny_config("lilicorr").to_json()
    del config["dflash_config"]["lilicorr_logit_scale"]
    with pytest.raises(UserError, match="lilicorr_logit_scale"):
        DrafterConfig.from_json(config)


def test_layer_ids_of_known_targets() -> None:
    assert default_layer_ids(5, 36) == (1, 9, 17, 25, 33)
    assert default_layer_ids(5, 24) == (1, 6, 11, 16, 21)
    assert default_layer_ids(5, 28) == (1, 7, 13, 19, 25)
    assert default_layer_ids(1, 6) == (3,)


def test_initial_weights() -> None:
    """Convolutions start as the identity and the selector's pairwise term at zero, so DFlash2 starts as DFlash."""
    torch.manual_seed(0)
    plain = build(tiny_config("dflash"))
    conv = build(tiny_config("dflash2"))
    conv.load_state_dict({**conv.state_dict(), **plain.state_dict()})
    x, context = torch.randn(1, 2, 16, 32), torch.randn(1, 9, 32)
    from drafters.model.blocks import Blocks

    blocks = Blocks(torch.tensor([[3, 9]]), 16, 9)
    torch.testing.assert_close(plain.backbone(x, context, blocks), conv.backbone(x, context, blocks), rtol=0, atol=1e-6)
    assert not conv.head.candidate_selector.successor_codebook.any()


@pytest.mark.parametrize("arm", DRAFTERS)
def test_recipes_hold_the_papers_weights(arm: str) -> None:
    recipe = load_recipe(arm)
    assert recipe.loss.keywords["weights"].beta == 7.0  # type: ignore[attr-defined]
    assert bool(recipe.model.get("conv_kernel_size")) == (arm in ("dflash2", "lilicorr-conv"))


@pytest.mark.parametrize("arm", DRAFTERS)
def test_head_parameters_are_the_modules_own(arm):
    """Counted from config.json as SGLang loads it, and from our module: two independent lists."""
    made = tiny_drafter(arm)
    assert head_parameters(made.config.to_json()) == sum(p.numel() for p in made.head.parameters())

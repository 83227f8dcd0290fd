"""What of a recipe is too large for a target is said, and a scaled one is not."""

import pytest

from drafters.mini.tokenizer import MASK_ID
from drafters.model.config import DrafterConfig
from drafters.model.registry import DRAFTERS, load_recipe, package
from drafters.training.scaled_recipes import oversized, write_scaled
from drafters.training.start import start
from sglang_specbench.checkpoint import read_config
from sglang_specbench.models import mini_folder

MINI = mini_folder() / "target"


@pytest.mark.parametrize("arm", DRAFTERS)
def test_the_papers_recipes_are_too_large_for_the_mini_target_and_scaled_ones_are_not(arm, tmp_path):
    assert any("5 layers are more than half of the target's 6" in text for text in oversized(load_recipe(arm), MINI))
    folder = write_scaled([arm], None, MINI, tmp_path / "recipes")
    scaled = load_recipe(arm, folder / f"{arm}.toml")
    assert list(oversized(scaled, MINI)) == []
    config = DrafterConfig.from_target(read_config(MINI / "config.json"), arm, mask_token_id=MASK_ID, **scaled.model)
    package(arm).Head(config)  # its sizes fit each other
    assert scaled.weights == load_recipe(arm).weights
    assert (config.num_hidden_layers, config.target_layer_ids) == (2, (1, 3))


def test_a_width_keeps_its_share_of_the_targets(tmp_path):
    """1,024 of 4,096, at 192: 48, and the nearest power of two (in the logarithm) is 64."""
    model = load_recipe("lilicorr", write_scaled(["lilicorr"], None, MINI, tmp_path) / "lilicorr.toml").model
    assert (model["lilicorr_hidden_size"], model["lilicorr_factor_dim"]) == (64, 64)
    assert model["lilicorr_candidate_topk"] == load_recipe("lilicorr").model["lilicorr_candidate_topk"]


def test_a_width_of_less_than_one_stays_as_it_is(tmp_path):
    """A rank of 8 is 0.4 of a target a twentieth as wide."""
    (tmp_path / "dspark.toml").write_text("[model]\nmarkov_rank = 8\n")
    folder = write_scaled(["dspark"], tmp_path, MINI, tmp_path / "scaled")
    assert load_recipe("dspark", folder / "dspark.toml").model["markov_rank"] == 8


def test_a_backbone_that_is_given_decides_its_own_shape(tmp_path):
    """The mini one reads three layers of the target, a scaled recipe by itself two."""
    backbone = mini_folder() / "dflash"
    folder = write_scaled(["lilicorr"], None, MINI, tmp_path, backbone)
    model = load_recipe("lilicorr", folder / "lilicorr.toml").model
    config = DrafterConfig.from_target(read_config(MINI / "config.json"), "lilicorr", mask_token_id=MASK_ID, **model)
    assert config.target_layer_ids == (1, 2, 4)
    start(config, 0, backbone)  # takes every tensor over


def test_the_recipes_fit_the_papers_targets(tmp_path):
    for width, depth in ((4096, 36), (2560, 36)):  # Qwen3-8B, Qwen3-4B
        folder = tmp_path / str(width)
        folder.mkdir()
        (folder / "config.json").write_text(f'{{"hidden_size": {width}, "num_hidden_layers": {depth}}}')
        assert [list(oversized(load_recipe(arm), folder)) for arm in DRAFTERS] == [[]] * len(DRAFTERS)

"""Weights that do not fit their config.json are found without reading them."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from sglang_specbench.checkpoint import tensor_shapes
from sglang_specbench.models import mini_folder
from sglang_specbench.weight_headers import faults

MINI = [path.parent.name for path in sorted(mini_folder().glob("*/config.json"))]
LAYERS = 2


@pytest.fixture
def model(tmp_path):
    """A folder with a plain model of two layers, and its tensors as a dictionary that ``save`` writes."""
    config = {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "vocab_size": 16, "num_hidden_layers": LAYERS,
        "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 12,
    }  # fmt: skip
    shapes = {"embed_tokens.weight": (16, 8)}
    for layer in range(LAYERS):
        of_layer = {
            "self_attn.q_proj.weight": (8, 8), "self_attn.k_proj.weight": (4, 8), "mlp.down_proj.weight": (8, 12),
        }  # fmt: skip
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in of_layer.items()}
    tensors = {f"model.{name}": np.zeros(shape, np.float32) for name, shape in shapes.items()}

    def save(changed_config=None, **changes):
        (tmp_path / "config.json").write_text(json.dumps(config | (changed_config or {})))
        save_file({k: v for k, v in (tensors | changes).items() if v is not None}, tmp_path / "model.safetensors")
        return tmp_path

    return save


def test_a_model_that_fits_has_no_fault(model):
    assert faults(model()) == []


@pytest.mark.parametrize("name", MINI)
def test_the_shipped_models_have_none(name):
    assert faults(mini_folder() / name) == []


def test_four_numbers_are_no_model(tmp_path):
    shutil.copy(mini_folder() / "target" / "config.json", tmp_path)
    save_file({"x": np.zeros(4, np.float32)}, tmp_path / "model.safetensors")
    assert faults(tmp_path) == ["no tensor of layer 0 (6 of 6 layers are absent)"]


def test_each_kind_of_odd_tensor_is_one_line(model):
    wide = np.zeros((8, 16), np.float32)
    changes = {f"model.layers.{layer}.self_attn.q_proj.weight": wide for layer in range(LAYERS)}
    assert faults(model(**changes)) == [
        "model.layers.0.self_attn.q_proj.weight: [8, 16], config.json means [8, 8] (2 such tensors)"
    ]


def test_a_missing_layer_is_named(model):
    gone = {name: None for name in load_file(model() / "model.safetensors") if ".1." in name}
    assert faults(model(**gone)) == ["no tensor of layer 1 (1 of 2 layers are absent)"]


@pytest.mark.parametrize("config", [{"quantization_config": {}}, {"architectures": ["Qwen3MoeForCausalLM"]}])
def test_shapes_that_are_not_known_are_not_judged(model, config):
    odd = {"model.layers.0.mlp.down_proj.weight": np.zeros((1, 1), np.float32)}
    assert faults(model(config, **odd)) == []


def test_a_head_may_have_layers_of_its_own():
    names = tensor_shapes(mini_folder() / "lilicorr")
    assert any(name.startswith("lilicorr.layers.0.mlp") for name in names)

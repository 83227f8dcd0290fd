"""Public checkpoint forms, imported: the same numbers under names that `specbench check` accepts."""

import copy
import json

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from drafters.checkpoints.check import check  # noqa: E402
from drafters.checkpoints.export import save  # noqa: E402
from drafters.checkpoints.import_public import import_checkpoint  # noqa: E402
from sglang_specbench.errors import UserError  # noqa: E402
from tests.drafters.made_checkpoints import configs, tensors, write  # noqa: E402

MODELOPT_LILICORR = {
    "feature_norm.": "feature_mlp.0.", "feature_mlp.up_proj.": "feature_mlp.1.",
    "feature_mlp.down_proj.": "feature_mlp.3.", ".mlp.up_proj.": ".mlp.0.", ".mlp.down_proj.": ".mlp.2.",
}  # fmt: skip


def zlab(config, values):
    """z-lab and SpecForge: the wrapper's prefix, the target's head and a rotary buffer left in the file."""
    extra = {"model.lm_head.weight": torch.ones(64, 16), "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}
    return config, {f"model.{k}": v for k, v in values.items()} | extra


def encoder(config, values):
    names = {"fc.weight": "encoder.fc.weight", "hidden_norm.weight": "encoder.output_norm_enc.weight"}
    return config, {names.get(k, k): v for k, v in values.items()}


def modelopt_lilicorr(config, values):
    def old(name):
        for new, before in MODELOPT_LILICORR.items():
            if name.startswith("lilicorr.") and new in name:
                return name.replace(new, before)
        return name

    return config, {old(k): v for k, v in values.items()}


def modelopt_dspark(config, values):
    config["architectures"] = ["DFlashDraftModel"]
    del config["sample_from_anchor"], config["confidence_head_with_markov"]
    return config, {k.replace("markov_head.", ""): v for k, v in values.items()}


def specforge_dspark(config, values):
    for name in ("markov_rank", "markov_head_type", "enable_confidence_head", "confidence_head_with_markov"):
        config["dflash_config"][name] = config.pop(name)
    config["torch_dtype"] = config.pop("dtype")
    return config, values


def specforge_domino(config, values):
    config["architectures"] = ["DominoDraftModel"]
    del config["dflash_config"]["projector_type"]
    return config, {f"module.{k}": v.float() for k, v in values.items()}


def transformers_rope(config, values):
    config["rope_parameters"] = {"rope_theta": config.pop("rope_theta"), "rope_type": "default"}
    return config, values


@pytest.mark.parametrize(
    ("arm", "form"),
    [
        ("dflash", zlab), ("dflash", encoder), ("dflash2", zlab), ("dflash", transformers_rope),
        ("lilicorr", modelopt_lilicorr), ("lilicorr-conv", modelopt_lilicorr),
        ("dspark", modelopt_dspark), ("dspark", specforge_dspark), ("domino", specforge_domino),
    ],
)  # fmt: skip
def test_a_public_form_becomes_ours(arm, form, tmp_path):
    ours = configs()[arm]
    values = tensors(ours)
    foreign = write(tmp_path / "foreign", *form(copy.deepcopy(ours), dict(values)))
    config, imported = import_checkpoint(foreign)
    assert imported.keys() == values.keys()
    assert all(torch.equal(imported[name], values[name]) for name in values)
    assert json.dumps(config["rope_theta"]) == "1000000.0"
    assert check(write(tmp_path / "ours", config, imported)) == []


def test_two_tensors_for_one_name_are_refused(tmp_path):
    config = configs()["dflash"]
    values = tensors(config)
    values["model.fc.weight"] = values["fc.weight"].clone()
    with pytest.raises(UserError, match=r"fc\.weight"):
        import_checkpoint(write(tmp_path, config, values))


def test_what_does_not_check_clean_is_not_written(tmp_path):
    config = configs()["dflash"]
    spoilt = {k: v for k, v in config.items() if k != "rope_theta"}
    with pytest.raises(UserError, match="not written: rope_theta"):
        save(tmp_path / "out", spoilt, tensors(config))
    assert list(tmp_path.iterdir()) == []

"""Public checkpoint forms, imported: the same numbers under names that `specbench check` accepts."""

import copy
import json

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from safetensors.torch import load_file  # noqa: E402

from drafters.checkpoints.check import check  # noqa: E402
from drafters.checkpoints.export import save  # noqa: E402
from drafters.checkpoints.import_public import import_checkpoint  # noqa: E402
from drafters.commands.export import export  # noqa: E402
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
    target = write(tmp_path / "target", {}, {"lm_head.weight": torch.ones(64, 16)})
    done = import_checkpoint(foreign, target)
    config, imported = done.config, done.tensors
    assert len(values) + sum(done.dropped.values()) == len(load_file(foreign / "model.safetensors"))
    assert imported.keys() == values.keys()
    assert all(torch.equal(imported[name], values[name]) for name in values)
    assert json.dumps(config["rope_theta"]) == "1000000.0"
    assert check(write(tmp_path / "ours", config, imported)) == []


def speculators(config, values):
    """As speculators 0.9.0 writes it (``DFlashSpeculatorConfig``), with the copies of the target that it saves."""
    nested = config.pop("dflash_config")
    sizes = {k: config[k] for k in config if k not in ("architectures", "block_size", "num_target_layers", "dtype")}
    sizes["rope_parameters"] = {"rope_theta": sizes.pop("rope_theta"), "rope_type": "default"}
    del sizes["is_causal"]
    selector = {k: v for k, v in nested.items() if k.startswith(("conv_", "selector_"))}
    head = {"lm_head.weight": torch.ones(64, 16), "embed_tokens.weight": torch.ones(64, 16)}
    return {
        "architectures": ["DFlashDraftModel"], "speculators_model_type": "dflash2" if selector else "dflash",
        "speculators_version": "0.9.0", "transformer_layer_config": sizes, "draft_vocab_size": 64, "block_size": 16,
        "aux_hidden_state_layer_ids": [i + 1 for i in nested["target_layer_ids"]], "dtype": "bfloat16",
        "mask_token_id": nested["mask_token_id"], "speculators_config": {"algorithm": "dflash"}, **selector,
    }, {**values, **head}  # fmt: skip


@pytest.mark.parametrize("arm", ["dflash", "dflash2"])
def test_speculators_layer_ids_are_shifted_by_one(arm, tmp_path):
    ours = configs()[arm]
    values = tensors(ours)
    foreign = write(tmp_path / "foreign", *speculators(copy.deepcopy(ours), dict(values)))
    target = write(tmp_path / "target", {}, {"model.embed_tokens.weight": torch.ones(64, 16)})  # tied
    done = import_checkpoint(foreign, target)
    assert done.config["dflash_config"] == ours["dflash_config"]
    assert done.dropped == {"the target's own, which SGLang lends": 2}
    assert all(torch.equal(done.tensors[name], values[name]) for name in values)
    assert check(write(tmp_path / "ours", done.config, done.tensors)) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"draft_vocab_size": 32}, "drafts over 32 of 64 tokens"), ({"speculators_model_type": "eagle3"}, "'eagle3'"),
        ({"aux_hidden_state_layer_ids": [0, 2]}, "not of the embedding"), ({"sample_from_anchor": True}, "sample_from"),
    ],
)  # fmt: skip
def test_what_sglang_cannot_serve_of_speculators_is_refused_by_name(changes, said, tmp_path):
    ours = configs()["dflash"]
    config, values = speculators(copy.deepcopy(ours), tensors(ours))
    target = write(tmp_path / "target", {}, {"embed_tokens.weight": torch.ones(64, 16)})
    with pytest.raises(UserError, match=said):
        import_checkpoint(write(tmp_path / "foreign", {**config, **changes}, values), target)


@pytest.mark.parametrize("name", ["lm_head.weight", "model.embed_tokens.weight"])
def test_a_head_or_embedding_of_the_drafters_own_is_never_dropped_in_silence(name, tmp_path):
    config = configs()["dflash"]
    foreign = write(tmp_path / "foreign", config, {**tensors(config), name: torch.ones(64, 16)})
    with pytest.raises(UserError, match="add --target"):
        import_checkpoint(foreign)
    target = write(tmp_path / "target", {}, {"embed_tokens.weight": torch.zeros(64, 16)})
    with pytest.raises(UserError, match="is not the target's"):
        import_checkpoint(foreign, target)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fc.weight", torch.ones(16, 48, dtype=torch.int8)), ("fc.weight", torch.ones(16, 48).to(torch.float8_e4m3fn)),
        ("fc.weight_scale", torch.ones(16)),
    ],
)  # fmt: skip
def test_quantised_weights_are_refused(name, value, tmp_path):
    config = configs()["dflash"]
    with pytest.raises(UserError, match="unquantised"):
        import_checkpoint(write(tmp_path, config, {**tensors(config), name: value}))


def test_a_checkpoint_is_not_exported_onto_itself(tmp_path):
    config = configs()["dflash"]
    folder = write(tmp_path / "one", config, tensors(config))
    before = (folder / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match="source and folder to write"):
        export(folder, tmp_path / "one" / ".." / "one")
    assert (folder / "model.safetensors").read_bytes() == before


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


@pytest.mark.parametrize(("key", "said"), [("use_swa", "a sliding window"), ("attention_sink_bias", "attention sinks")])
def test_what_sglang_does_not_read_of_modelopt_is_refused_by_name(key, said, tmp_path):
    ours = configs()["dflash"]
    ours["dflash_config"][key] = True
    with pytest.raises(UserError, match=f"dflash_config.{key}: SGLang 0.5.23 does not serve {said}"):
        import_checkpoint(write(tmp_path / "foreign", ours, tensors(ours)))


@pytest.mark.parametrize("causal", [True, False])
def test_a_block_attends_as_its_trainer_says(causal, tmp_path):
    ours = configs()["dflash"]
    del ours["is_causal"]
    ours["dflash_config"]["causal"] = causal
    done = import_checkpoint(write(tmp_path / "foreign", ours, tensors(ours)))
    assert done.config["is_causal"] is causal


def test_full_attention_is_said_and_a_sliding_one_is_not_guessed(tmp_path):
    ours = configs()["dflash"]
    del ours["is_causal"]
    assert import_checkpoint(write(tmp_path / "full", ours, tensors(ours))).config["is_causal"] is False
    ours["layer_types"] = ["sliding_attention"] * ours["num_hidden_layers"]
    assert "is_causal" not in import_checkpoint(write(tmp_path / "sliding", ours, tensors(ours))).config

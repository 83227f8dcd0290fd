"""`specbench check` says nothing about a good checkpoint and names each planted trap, once, with a remedy."""

import copy
import json

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from typer.testing import CliRunner  # noqa: E402

from drafters.checkpoints.check import check  # noqa: E402
from sglang_specbench.cli import app  # noqa: E402
from sglang_specbench.errors import UserError  # noqa: E402
from tests.drafters.made_checkpoints import TARGET, configs, tensors, write  # noqa: E402

ABSENT = object()
ARMS = list(configs())


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TARGET))
    return folder


@pytest.mark.parametrize("arm", ARMS)
def test_a_good_checkpoint_has_no_finding(arm, tmp_path, target):
    config = configs()[arm]
    assert check(write(tmp_path / arm, config, tensors(config)), target) == []


CONFIG_TRAPS = [
    ("dflash", "rope_theta", ABSENT, "rope_theta"),
    ("dflash", "is_causal", ABSENT, "is_causal"),
    ("dflash", "is_causal", True, "is_causal"),
    ("dflash", "block_size", 1, "block_size"),
    ("dspark", "block_size", 32, "block_size"),
    ("dflash", "dtype", "float32", "dtype"),
    ("dflash", "max_position_embeddings", 2048, "max_position_embeddings"),
    ("dflash", "num_target_layers", 7, "num_target_layers"),
    ("dflash", "layer_types", ["full_attention"], "layer_types"),
    ("dflash", "layer_types", ["full_attention", "sliding_attention"], "use_sliding_window"),
    ("dflash", "vocab_size", 63, "vocab_size"),
    ("dflash", "num_attention_heads", ABSENT, "num_attention_heads"),
    ("dflash", "dflash_config.mask_token_id", ABSENT, "dflash_config.mask_token_id"),
    ("dflash", "dflash_config.mask_token_id", 64, "dflash_config.mask_token_id"),
    ("dflash", "dflash_config.mask_token_id", 2, "dflash_config.mask_token_id"),
    ("dflash", "dflash_config.target_layer_ids", ABSENT, "dflash_config.target_layer_ids"),
    ("dflash", "dflash_config.target_layer_ids", [1, 3, 5], "dflash_config.target_layer_ids"),
    ("dflash", "architectures", ["DominoDraftModel"], "architectures"),
    ("dspark", "markov_rank", ABSENT, "markov_rank"),
    ("dspark", "markov_head_type", ABSENT, "markov_head_type"),
    ("dspark", "confidence_head_with_markov", ABSENT, "confidence_head_with_markov"),
    ("dspark", "sample_from_anchor", False, "sample_from_anchor"),
    ("dflash2", "dflash_config.conv_group_size", ABSENT, "dflash_config.conv_group_size"),
    ("dflash2", "dflash_config.selector_rank", ABSENT, "dflash_config.selector_rank"),
    ("dflash2", "dflash_config.selector_top_k", 12, "dflash_config.selector_top_k"),
    ("domino", "dflash_config.shift_label", "true", "dflash_config.shift_label"),
    ("domino", "dflash_config.pure_draft_prefix_len", 0, "dflash_config.pure_draft_prefix_len"),
    ("domino", "emb_dim", 7, "dflash_config.emb_dim"),
    ("lilicorr", "dflash_config.lilicorr_candidate_topk", 6, "dflash_config.lilicorr_candidate_topk"),
    ("lilicorr", "dflash_config.lilicorr_num_heads", 5, "dflash_config.lilicorr_num_heads"),
    *(
        ("lilicorr", f"dflash_config.lilicorr_{name}", ABSENT, f"dflash_config.lilicorr_{name}")
        for name in ("num_layers", "mlp_ratio", "factor_dim", "vector_eps", "logit_scale", "hidden_size")
    ),
]


@pytest.mark.parametrize(("arm", "key", "value", "where"), CONFIG_TRAPS)
def test_a_config_trap_is_found(arm, key, value, where, tmp_path, target):
    config = configs()[arm]
    folder = write(tmp_path / arm, config, tensors(config))
    changed = copy.deepcopy(config)
    table = changed["dflash_config"] if key.startswith("dflash_config.") else changed
    name = key.removeprefix("dflash_config.")
    if value is ABSENT:
        del table[name]
    else:
        table[name] = value
    (folder / "config.json").write_text(json.dumps(changed))
    found = check(folder, target)
    assert where in {finding.where for finding in found}
    assert all(finding.problem and finding.remedy for finding in found)


def test_nested_only_dspark_keys_are_not_where_sglang_looks(tmp_path):
    config = configs()["dspark"]
    values = tensors(config)
    config["dflash_config"]["markov_rank"] = config.pop("markov_rank")
    assert [f.where for f in check(write(tmp_path, config, values))] == ["markov_rank"]


def planted(values, name, value):
    return {**values, name: value} if value is not None else {k: v for k, v in values.items() if k != name}


TENSOR_TRAPS = [
    ("dflash", "layers.0.self_attn.q_norm.weight", None, "missing"),
    ("dflash", "layers.1.mlp.gate_proj.weight", None, "missing"),
    ("dflash", "lm_head.weight", (64, 16), "unexpected"),
    ("dflash", "fc.weight", (16, 32), "shape"),
    ("dflash", "norm.weight", torch.ones(16), "F32"),
    ("dflash", "norm.weight", torch.full((16,), torch.nan, dtype=torch.bfloat16), "NaN"),
    ("dflash", "layers.0.self_attn.k_norm.weight", torch.ones(8, dtype=torch.bfloat16), "exactly 1"),
    ("dflash2", "candidate_selector.predecessor_codebook", None, "missing"),
    ("dflash2", "layers.0.mlp_conv.kernel_projection.weight", None, "missing"),
    ("dflash2", "candidate_selector.successor_codebook", torch.zeros(64, 4, dtype=torch.bfloat16), "is zero"),
    ("domino", "prefix_gru.weight_hh_l0", None, "missing"),
    ("dspark", "markov_head.markov_w2.weight", None, "missing"),
    ("dspark", "confidence_head.proj.weight", (1, 16), "shape"),
    ("lilicorr", "lilicorr.out_head.bias", None, "missing"),
    ("lilicorr", "layers.0.mlp_conv.base_kernel", (2, 2, 16), "unexpected"),
    ("lilicorr-conv", "layers.0.mlp_conv.base_kernel", None, "missing"),
]


@pytest.mark.parametrize(("arm", "name", "value", "said"), TENSOR_TRAPS)
def test_a_tensor_trap_is_found_and_alone(arm, name, value, said, tmp_path, target):
    config = configs()[arm]
    if isinstance(value, tuple):
        value = torch.ones(value, dtype=torch.bfloat16)
    found = check(write(tmp_path / arm, config, planted(tensors(config), name, value)), target)
    assert [finding.where for finding in found] == [name]
    assert said in found[0].problem


def test_a_prefixed_name_is_recognised(tmp_path):
    config = configs()["dflash"]
    values = {f"module.{name}": value for name, value in tensors(config).items()}
    found = check(write(tmp_path, config, values))
    assert any("'module.'" in finding.remedy for finding in found)


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_an_unreadable_config_is_a_usage_error(text, tmp_path):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match=r"config\.json"):
        check(tmp_path)


def test_a_truncated_tensor_file_is_a_usage_error(tmp_path):
    config = configs()["dflash"]
    folder = write(tmp_path, config, tensors(config))
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-10])
    with pytest.raises(UserError, match="not a safetensors file"):
        check(folder)


def test_the_command_exits_0_when_clean_and_1_with_a_table_when_not(tmp_path):
    config = configs()["dflash"]
    folder = write(tmp_path / "good", config, tensors(config))
    assert CliRunner().invoke(app, ["check", str(folder)]).exit_code == 0
    bad = write(tmp_path / "bad", config, planted(tensors(config), "fc.weight", None))
    result = CliRunner().invoke(app, ["check", str(bad)])
    assert result.exit_code == 1
    assert "fc.weight" in result.output


@pytest.mark.parametrize(("arm", "size", "drafted"), [("dflash", 16, 15), ("dflash", 8, 7), ("dspark", 7, 7)])
def test_the_command_says_how_many_tokens_a_block_drafts(tmp_path, arm, size, drafted):
    config = {**configs()[arm], "block_size": size}
    folder = write(tmp_path / arm, config, tensors(config))
    done = CliRunner().invoke(app, ["check", str(folder)])
    assert done.exit_code == 0, done.output
    assert f"nothing wrong; {arm}, {drafted} tokens drafted a block" in " ".join(done.output.split())

"""What SGLang would serve under a wrong name is refused from config and header alone."""

import pytest

from sglang_specbench import checkpoint, checkpoint_kind
from sglang_specbench.arms import ARMS
from sglang_specbench.errors import UserError
from tests.harness.made import DFLASH, TARGET, drafter, model

OURS = ("dflash", "dflash2", "domino", "dspark", "lilicorr", "lilicorr-conv")


@pytest.fixture
def target(tmp_path):
    return model(tmp_path / "target", TARGET)


@pytest.mark.parametrize("arm", [a for a in ARMS.values() if a.checkpoint in OURS], ids=lambda a: a.name)
@pytest.mark.parametrize("kind", OURS)
def test_an_arm_takes_its_own_kind_and_no_other(tmp_path, target, arm, kind):
    folder = model(tmp_path / "d", drafter(kind))
    if kind == arm.checkpoint:
        checkpoint.check(folder, arm, target)
    else:
        with pytest.raises(UserError, match=rf"config\.json: .*arm '{arm.name}' needs"):
            checkpoint.check(folder, arm, target)


FAULTS = {
    "no rope_theta": ("dflash", {"rope_theta": None}, "no rope_theta: transformers would take 10000"),
    "nothing drafted": ("dflash", {"block_size": 1}, "block_size: 1, arm 'dflash' can be served with 2 to 32"),
    "no block size": ("dflash", {"block_size": None}, "block_size: None"),
    "gamma 32": ("dspark", {"block_size": 32}, "block_size: 32, arm 'dspark' can be served with 1 to 31"),
    "a word": ("dflash", {"block_size": "16"}, "block_size: 16, arm 'dflash' can be served"),
    "a truth": ("dspark", {"block_size": True}, "block_size: True"),
    "other architecture": ("dflash", {"architectures": ["LlamaForCausalLM"]}, "needs DFlashDraftModel"),
    "no architecture": ("dflash", {"architectures": []}, "architectures: None"),
    "another target's": ("lilicorr", {"hidden_size": 4096}, "hidden_size: 4096, the target"),
    "another vocabulary": ("domino", {"vocab_size": 7}, "vocab_size: 7, the target"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named(tmp_path, target, fault):
    arm, change, message = FAULTS[fault]
    config = {k: v for k, v in {**drafter(arm), **change}.items() if v is not None}
    with pytest.raises(UserError, match=r"config\.json: ") as caught:
        checkpoint.check(model(tmp_path / "d", config), ARMS[arm], target)
    assert message in str(caught.value)


def test_the_nested_block_size_comes_first(tmp_path, target):
    config = {**DFLASH, "block_size": 4, "dflash_config": {**DFLASH["dflash_config"], "block_size": 16}}
    checkpoint.check(model(tmp_path / "d", config), ARMS["dflash"], target)


def test_rope_parameters_will_do(tmp_path, target):
    config = {k: v for k, v in DFLASH.items() if k != "rope_theta"}
    config["rope_parameters"] = {"rope_theta": 1e6, "rope_type": "default"}
    checkpoint.check(model(tmp_path / "d", config), ARMS["dflash"], target)


OWN = [(arm, name) for arm in OURS for name in ARMS[arm].tensors]


@pytest.mark.parametrize(("arm", "lost"), OWN)
def test_a_head_without_one_of_its_own_tensors_is_refused(tmp_path, target, arm, lost):
    kept = [name for name in ARMS[arm].tensors if name != lost]
    folder = model(tmp_path / "d", drafter(arm), kept)
    with pytest.raises(UserError, match=f"no tensor '{lost}': SGLang would serve arm '{arm}' without it"):
        checkpoint.check(folder, ARMS[arm], target)


SIZES = [(arm, name) for arm in OURS for name in ARMS[arm].sizes]


@pytest.mark.parametrize("value", [None, 0, "8", True])
@pytest.mark.parametrize(("arm", "size"), SIZES)
def test_a_head_without_one_of_its_sizes_is_refused(tmp_path, target, arm, size, value):
    config = drafter(arm)
    table = config["dflash_config"] if size in config["dflash_config"] else config
    folder = model(tmp_path / "d", {**config, **({size: value} if table is config else {})})
    if table is not config:
        table[size] = value
        model(tmp_path / "d", config)
    with pytest.raises(UserError, match=f"{size}: {value}, arm '{arm}' needs a positive whole number"):
        checkpoint.check(folder, ARMS[arm], target)


def test_no_two_checkpoints_are_told_apart_by_nothing():
    """Two rows with one architecture and equal marks would make the kind of a config a matter of their order."""
    rows = [checkpoint_kind.row(name) for name in checkpoint_kind.block_drafters()]
    told = [(architecture, tuple(sorted(row.marks.items()))) for row in rows for architecture in row.architectures]
    assert len(told) == len(set(told))


@pytest.mark.parametrize("data", [b"", b"\1\0\0\0\0\0\0\0{", b"\xff" * 40])
def test_broken_safetensors_are_named(tmp_path, data):
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(UserError, match=r"model\.safetensors: not a safetensors file"):
        checkpoint.tensor_names(tmp_path)


def test_a_download_that_broke_off_is_named(tmp_path, target):
    folder = model(tmp_path / "d", drafter("dflash"))
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"model\.safetensors: not a safetensors file: .*incomplete"):
        checkpoint.check(folder, ARMS["dflash"], target)


@pytest.mark.parametrize("text", ["{", "[]", None])
def test_an_unreadable_config_is_named(tmp_path, text):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match=r"config\.json: "):
        checkpoint.read_config(tmp_path / "config.json")


def test_header_names_agree_with_the_safetensors_package(tmp_path):
    """The independent reader of the same bytes."""
    safetensors = pytest.importorskip("safetensors.numpy")
    import numpy as np

    safetensors.save_file({"a.b": np.zeros(3, np.float32), "c": np.ones((2, 2))}, tmp_path / "model.safetensors")
    assert checkpoint.tensor_names(tmp_path) == {"a.b", "c"}

"""A model source is found, or its remedy is named; the hub's cache is read as it is laid out."""

from pathlib import Path

import pytest

from sglang_specbench import models
from sglang_specbench.digest import weights_digest
from sglang_specbench.errors import UserError
from tests.harness.made import TARGET, model


def test_a_folder_is_found_with_its_digest(tmp_path):
    folder = model(tmp_path / "m", TARGET)
    found = models.resolve(str(folder), "here")
    assert (found.folder, found.digest, found.fetch) == (folder, weights_digest(folder), "")


@pytest.mark.parametrize("source", ["/nope/model", "./nope", "a/b/c", "mini:nope"])
def test_a_missing_folder_is_an_error_that_names_the_key(source):
    with pytest.raises(UserError, match=r"sweep: target\.x\.path: .*no folder"):
        models.resolve(source, "sweep: target.x.path")


@pytest.mark.parametrize(
    ("source", "digest", "command"),
    [
        ("org/name", "hub:org/name@main", "hf download org/name"),
        ("org/name@abc", "hub:org/name@abc", "hf download org/name --revision abc"),
        ("trained:a/dflash", "trained:a/dflash", "specbench export to checkpoints/a/dflash"),
    ],
)
def test_what_may_come_later_is_planned_with_a_placeholder(monkeypatch, tmp_path, source, digest, command):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    found = models.resolve(source, "here")
    assert found.folder is None
    assert found.digest == digest
    assert command in found.fetch


def test_a_downloaded_hub_id_is_read_from_the_cache(monkeypatch, tmp_path):
    """The layout is the library's: its own look-up finds the same file."""
    from huggingface_hub import try_to_load_from_cache

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--org--name"
    folder = model(repository / "snapshots" / "c0ffee", TARGET)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("c0ffee")
    assert try_to_load_from_cache("org/name", "config.json", cache_dir=tmp_path) == str(folder / "config.json")
    assert models.resolve("org/name", "x").folder == folder
    assert models.resolve("org/name@c0ffee", "x").folder == folder
    assert models.resolve("org/name@other", "x").folder is None


def test_a_snapshot_without_weights_counts_as_not_downloaded(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    folder = model(tmp_path / "models--org--name" / "snapshots" / "c0ffee", TARGET)
    (folder / "model.safetensors").unlink()
    assert models.resolve("org/name@c0ffee", "x").folder is None


def test_a_trained_model_is_found_where_export_writes_it(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    model(tmp_path / "checkpoints" / "a" / "dflash", TARGET)
    assert models.resolve("trained:a/dflash", "x").path == "checkpoints/a/dflash"


def test_a_folder_that_must_be_here_is_found_by_each_kind_of_name(monkeypatch, tmp_path):
    """One resolver for `train`, `check`, `generate`, `export`, `serve` and sweeps; nothing is hashed."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(models, "weights_digest", lambda _: pytest.fail("hashed"))
    monkeypatch.chdir(tmp_path)
    model(tmp_path / "checkpoints" / "a" / "dflash", TARGET)
    snapshot = model(tmp_path / "hub" / "models--org--name" / "snapshots" / "c0ffee", TARGET)
    assert models.folder_of("trained:a/dflash", "x") == Path("checkpoints/a/dflash")
    assert models.folder_of("checkpoints/a/dflash", "x") == Path("checkpoints/a/dflash")
    assert models.folder_of("org/name@c0ffee", "x") == snapshot
    assert models.folder_of("mini:target", "x") == models.mini_folder() / "target"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("trained:a/lost", "'trained:a/lost' is not on this machine .*specbench export to checkpoints/a/lost"),
        ("org/name@abc", "'org/name@abc' is not on this machine .*hf download org/name --revision abc"),
        ("mini:lost", "'mini:lost': no folder .*the mini models are dflash, "),
        ("./lost", "'./lost': no folder lost .*check the path"),
        (".", r"\.: no config.json there"),
    ],
)
def test_one_clear_error_for_each_kind_of_missing_model(monkeypatch, tmp_path, source, words):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=f"train: --target: {words}"):
        models.folder_of(source, "train: --target")


def test_a_snapshot_of_the_tokenizer_alone_does_where_no_weights_are_needed(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    folder = model(tmp_path / "models--org--name" / "snapshots" / "c0ffee", TARGET)
    (folder / "model.safetensors").unlink()
    assert models.folder_of("org/name@c0ffee", "x", weights=False) == folder
    with pytest.raises(UserError, match=r"no \*.safetensors there \(hf download org/name --revision c0ffee\)"):
        models.folder_of("org/name@c0ffee", "x")

"""What `specbench audit` refuses before it starts anything, and what it would audit."""

import pytest

from harness.audit import subjects
from harness.commands.audit import EXIT, audit
from harness.sweep import load
from sglang_specbench.errors import UserError

SWEEP = """
name = "two"
[target.small]
path = "."
drafters = { lilicorr = ".", dspark = "." }
[server]
device = "cpu"
[[panel]]
arms = ["ar", "lilicorr"]
[panel.sets.mini]
prompts = 2
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.toml").write_text(SWEEP)
    (tmp_path / "config.json").write_text('{"vocab_size": 64}')
    (tmp_path / "model.safetensors").write_bytes(b"0")
    return "two.toml"


def test_a_running_server_needs_its_target_and_one_arm(sweep, tmp_path):
    with pytest.raises(UserError, match="go together"):
        audit(
            sweep,
            arm=["lilicorr"],
            server="http://x",
            target_server="",
            samples=200,
            out=tmp_path,
            prompt_set="",
            again=False,
        )


def test_by_default_every_arm_with_a_checkpoint_that_this_device_runs(sweep):
    assert list(subjects.arms(load(sweep), "small", [], "cpu")) == [
        "ar", "dspark", "dspark-argmax", "lilicorr", "lilicorr-argmax", "lilicorr-exact",
    ]  # fmt: skip
    assert "dspark-scheduled" in subjects.arms(load(sweep), "small", [], "cuda")


@pytest.mark.parametrize(
    ("wanted", "message"), [("lilicor", "did you mean 'lilicorr'"), ("dflash2", "no 'dflash2', which dflash2 needs")]
)
def test_an_arm_that_cannot_be_audited(sweep, wanted, message):
    with pytest.raises(UserError, match=message):
        subjects.arms(load(sweep), "small", [wanted], "cpu")


def test_the_launch_is_the_targets_own_on_this_device(sweep):
    subject = subjects.subject(load(sweep), "small", subjects.elsewhere("http://a", "http://t"), remote=True)
    assert (subject.vocabulary, subject.launch.dtype, subject.launch.device) == (64, "float32", "cpu")
    assert subject.serve(subject.launch).url == "http://t"
    assert subject.serve(subject.arm("lilicorr", subject.target, 42)).url == "http://a"


def test_the_worst_verdict_decides():
    assert list(EXIT) == ["pass", "inconclusive", "infrastructure", "not attested", "fail"]
    assert list(EXIT.values()) == [0, 3, 5, 4, 1]

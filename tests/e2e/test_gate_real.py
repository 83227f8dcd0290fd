"""The gate on real servers: noise in one head's weights is a regression of tau, untouched weights are not."""

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

pytestmark = [pytest.mark.sglang, pytest.mark.torch, pytest.mark.slow]

SWEEP = """
name = "gate"
[target.mini]
path = "mini:target"
[target.mini.drafters]
lilicorr = "{drafter}"
[server]
device = "cpu"
context_length = 1024
[[panel]]
arms = ["ar", "lilicorr"]
[panel.sets.mini]
prompts = 15
max_new_tokens = 64
"""


def specbench(*args, expect):
    code = "from sglang_specbench.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=900)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout


def measure(folder, drafter):
    sweep = folder / "sweep.toml"
    folder.mkdir()
    sweep.write_text(SWEEP.format(drafter=drafter))
    specbench("run", sweep, "--out", folder / "run", expect=0)
    return folder / "run"


def with_noise(source, folder):
    """A copy of the checkpoint with noise of twenty times its own spread in one projection of the head."""
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(source, folder)
    weights = load_file(folder / "model.safetensors")
    name = "lilicorr.in_head.weight"
    noise = torch.randn(weights[name].shape, generator=torch.Generator().manual_seed(0))
    weights[name] = (weights[name] + 20 * weights[name].float().std() * noise).to(weights[name].dtype).contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_noise_in_one_head_fails_the_tau_gate_and_names_arm_and_set(tmp_path):
    """T=0 and the same prompts: an untouched drafter gives the same counts, so its effect is 0 with no doubt."""
    shipped = Path(str(resources.files("drafters") / "mini" / "lilicorr"))
    baseline = measure(tmp_path / "baseline", shipped)
    untouched = measure(tmp_path / "untouched", shipped)
    worse = measure(tmp_path / "worse", with_noise(shipped, tmp_path / "noisy"))
    rules = ("--baseline", baseline, "--metric", "tau")
    assert "gate: ok" in specbench("gate", untouched, *rules, expect=0)
    text = specbench("gate", worse, *rules, expect=1)
    assert "lilicorr, tau, by setting" in text
    assert "mini T=0 argmax c=1" in text

"""The sixth drafter of examples/, built in a copy of the packages, loses no check of the five."""

import json
import os
import subprocess
import sys

import pytest

from tests.drafters.sixth_drafter import EXAMPLE, ROOT, build

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SCRIPT = """
import json, sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import torch
from safetensors.torch import load_file, save_file

from drafters.checkpoints.check import check
from drafters.checkpoints.export import save
from drafters.model.config import DrafterConfig
from drafters.model.drafter import build, load
from drafters.model.registry import DRAFTERS, load_recipe
from sglang_specbench import SGLANG_VERSION, __version__, checkpoint
from sglang_specbench.arms import ARMS, Switch
from sglang_specbench.attestation import Attestation, mismatches
from sglang_specbench.errors import UserError
from sglang_specbench.serving import attest

target, good = json.loads(sys.argv[1]), Path(sys.argv[2])
made = {"registered": "toy" in DRAFTERS, "look": ARMS["toy"].look.colour, "recipe": dict(load_recipe("toy").model)}
config = DrafterConfig.from_target(target, "toy", mask_token_id=3, num_hidden_layers=2, toy_rank=4)
save(good, config.to_json(), {name: torch.randn_like(value) for name, value in build(config).state_dict().items()})
written, tensors = json.loads((good / "config.json").read_text()), load_file(good / "model.safetensors")
load(written, tensors)

def served(folder, arm="toy"):
    try:
        checkpoint.check(folder, ARMS[arm], None)
    except UserError as error:
        return str(error)
    return ""

def judged(name, config=written, tensors=tensors):
    folder = good.parent / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return [sorted(f.where for f in check(folder)), served(folder)]

made["good"] = [[f.where for f in check(good)], served(good)]
made["as_dflash"] = served(good, "dflash")
made["missing"] = judged("missing", tensors={k: v for k, v in tensors.items() if k != "toy_up.weight"})
made["shape"] = judged("shape", tensors={**tensors, "toy_up.weight": tensors["toy_up.weight"].T.contiguous()})
for name, rank in (("no_rank", None), ("word", "4")):
    made[name] = judged(name, config={**written, "dflash_config": {**written["dflash_config"], "toy_rank": rank}})
made["foreign"] = judged("foreign", config={**written, "architectures": ["DFlashDraftModel"]})

row = replace(ARMS["toy"], sampling="sampled", switch=Switch("toy", "_toy_sampling_enabled"))
attest.ARMS = {"toy": row}

def proposal(worker):
    seen = Attestation(plugin_version=__version__, sglang_version=SGLANG_VERSION, arm="toy", device="cpu",
        proposal=attest._proposal(worker, row), dtype="float32", draft_model="ToyDraftModel", seed=1, window=16,
        drafted=15)
    known = {"seed": 1, "target_digest": "", "draft_digest": "", "device": "cpu", "dtype": "float32", "capacity": 1,
        "window": 16}
    reasons = mismatches(seen.to_json(), row, "sampled", **known)
    return [reason for reason in reasons if reason.startswith("proposal")]

made["sampled"] = proposal(SimpleNamespace(toy=1, _toy_sampling_enabled=True))
made["argmax"] = proposal(SimpleNamespace(toy=1, _toy_sampling_enabled=False))
made["no_head"] = proposal(SimpleNamespace())
print(json.dumps(made))
"""
TARGET = {
    "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 6, "num_attention_heads": 2, "num_key_value_heads": 1,
    "head_dim": 8, "intermediate_size": 24, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
}  # fmt: skip


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    tree = build(tmp_path_factory.mktemp("tree"))
    command = [sys.executable, "-c", SCRIPT, json.dumps(TARGET), str(tree / "made" / "good")]
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_it_has_the_files_of_every_sibling():
    files = lambda folder: {p.name for p in folder.iterdir() if p.name != "__pycache__"}
    assert files(EXAMPLE / "drafters" / "toy") == files(ROOT / "drafters" / "dflash")


def test_it_is_registered_and_its_export_has_no_finding(seen):
    assert (seen["registered"], seen["look"]) == (True, "#F0E442")
    assert seen["recipe"] == {"num_hidden_layers": 5, "toy_rank": 8}
    assert seen["good"] == [[], ""]


def test_a_missing_tensor_is_found_on_both_sides(seen):
    findings, served = seen["missing"]
    assert findings == ["toy_up.weight"]
    assert "no tensor 'toy_up.weight': SGLang would serve arm 'toy' without it" in served


def test_a_wrong_shape_is_found(seen):
    assert seen["shape"][0] == ["toy_up.weight"]


@pytest.mark.parametrize("fault", ["no_rank", "word"])
def test_a_wrong_config_is_found_on_both_sides(seen, fault):
    findings, served = seen[fault]
    assert "dflash_config.toy_rank" in findings  # beside the tensors, whose shapes it implies
    assert "toy_rank" in served
    assert "needs a positive whole number" in served


def test_it_is_no_other_drafter_and_no_other_is_it(seen):
    assert "needs DFlashDraftModel" in seen["as_dflash"]
    findings, served = seen["foreign"]
    assert findings == ["toy_down.weight", "toy_up.weight"]  # no tensors of DFlash
    assert "arm 'toy' needs ToyDraftModel" in served


def test_a_wrong_proposal_is_not_measured(seen):
    assert seen["sampled"] == []
    assert seen["argmax"] == ["proposal: wanted 'sampled', server says 'argmax'"]
    assert seen["no_head"] == ["proposal: wanted 'sampled', server says 'unknown: the worker has no toy'"]

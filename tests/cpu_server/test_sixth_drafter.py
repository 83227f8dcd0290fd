"""The sixth drafter of examples/, built into a copy of the packages, is served by its own model class and audited.

Its weights are the mini DFlash's, and a correction that is no zero: greedy answers must be the target's, and samples
must follow its distribution, however the drafter drafts.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drafters.sixth_drafter import ROOT, build

pytestmark = [pytest.mark.sglang, pytest.mark.slow]
SCRIPT = """
import json, os
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file

from drafters.checkpoints.export import save
from harness.audit import audit, subjects
from harness.audit.reference import Design
from harness.sweep.sweep import load
from sglang_specbench.models import mini_folder
from tests.cpu_server.audited import Bench
from tests.cpu_server.servers import Nursery

RANK, SWEEP, DESIGN = 4, "examples/sixth_drafter/sweep.toml", Design(samples=800)
torch.manual_seed(0)
dflash = mini_folder() / "dflash"
config = json.loads((dflash / "config.json").read_text()) | {"architectures": ["ToyDraftModel"]}
config["dflash_config"]["toy_rank"] = RANK
width = config["hidden_size"]
head = {"toy_down.weight": torch.randn(RANK, width) / width**0.5, "toy_up.weight": torch.randn(width, RANK) / 10}
Path("checkpoints").mkdir()
save(Path("checkpoints/toy"), config, load_file(dflash / "model.safetensors") | head)

launch = subjects.subject(load(SWEEP), "mini", subjects.here(Path(".")), "mini", remote=False).launch
nursery = Nursery(launch.environment(os.environ))
try:
    bench = Bench(nursery, Path("."), DESIGN, sweep=SWEEP)
    alone = replace(bench.subject, remote=True)  # one server of it: no seeds are compared
    found = audit.audit(alone, "toy", bench.draft("toy"), bench.reference, DESIGN)
    print(json.dumps(found.to_json()))
finally:
    nursery.close()
"""


def test_it_is_served_by_its_own_class_and_passes_its_audit(tmp_path: Path) -> None:
    tree = build(tmp_path / "tree")
    path = os.pathsep.join(map(str, (tree, ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    certificate = json.loads(done.stdout.splitlines()[-1])
    assert certificate["attestation"]["draft_model"] == "ToyDraftModel"
    assert certificate["server"][:2] == [
        "PYTHONPATH=examples/sixth_drafter",
        "SGLANG_EXTERNAL_MODEL_PACKAGE=toy_sglang",
    ]
    assert certificate["verdict"] in ("pass", "inconclusive"), certificate["reasons"]
    assert [one["divergences"] for one in certificate["greedy"]] == [[]] * len(certificate["greedy"])

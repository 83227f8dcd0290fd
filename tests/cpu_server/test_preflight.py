"""SGLang's argument resolution of GPU launches on a machine that has no GPU."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from sglang_specbench.launch import Launch
from sglang_specbench.models import mini_folder
from tests.cpu_server.checkpoints import of_width

pytestmark = [pytest.mark.sglang, pytest.mark.slow]


def verdicts(*launches: Launch) -> list[dict[str, Any]]:
    rows = json.dumps([dataclasses.asdict(launch) for launch in launches])
    command = [sys.executable, "-m", "sglang_specbench.serving.preflight"]
    done = subprocess.run(command, input=rows, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_verdicts(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    def launch(arm: str, draft: Path | None, **changes: Any) -> Launch:
        values = {
            "arm": arm,
            "proposal": "argmax",
            "target": str(checkpoints["target"]),
            "port": 1,
            "seed": 42,
            "context_length": 512,
        }
        return Launch(**{**values, "draft": str(draft) if draft else None, **changes})

    def broken(name: str, **keys: object) -> Path:
        folder = shutil.copytree(checkpoints[name], tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}")
        config = json.loads((folder / "config.json").read_text())
        config["dflash_config"] |= keys
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    narrow = {name: of_width(checkpoints[name], tmp_path / f"narrow-{name}", 8) for name in ("dflash", "dspark")}
    found = verdicts(
        launch("ar", None, proposal="none"),
        launch("dflash", checkpoints["dflash"]),
        launch("dspark", checkpoints["dspark"], proposal="sampled"),
        launch("lilicorr", checkpoints["lilicorr"], device="cpu", dtype="float32"),
        launch("dflash", None),
        launch("dflash", checkpoints["dflash2"]),
        launch("lilicorr", broken("lilicorr", lilicorr_candidate_topk=3)),
        launch("dflash2", checkpoints["dflash2"], extra=("--speculative-dflash-block-size", "8")),
        launch("dflash", checkpoints["dflash"], extra=("--no-such-flag",)),
        launch("dflash", narrow["dflash"]),
        launch("dflash", narrow["dflash"], window=8),
        launch("dspark", narrow["dspark"], window=8),
    )
    assert [verdict["ok"] for verdict in found] == [True] * 4 + [False] * 6 + [True] * 2
    assert [v["resolved"]["speculative_num_draft_tokens"] for v in found[-2:]] == [8, 8]
    assert found[1]["resolved"]["speculative_num_draft_tokens"] == 16
    assert found[2]["resolved"]["attention_backend"] == "fa3"
    for verdict, text in zip(
        found[4:-2],
        (
            "draft-model-path",
            "architecture 'DFlash2DraftModel'",
            "power of two",
            "must match",
            "no-such-flag",
            "the checkpoint's is 8, SGLang would verify 16",
        ),
        strict=True,
    ):
        assert text in " ".join(verdict["reasons"]), verdict


def test_configs_are_enough_and_weights_that_are_here_are_looked_at(tmp_path: Path) -> None:
    """Of a hub id of which only config and tokenizer were downloaded, and a drafter of four numbers."""
    hub, mini = tmp_path / "hub", mini_folder()
    snapshot = hub / "models--org--target" / "snapshots" / "c0ffee"
    shutil.copytree(mini / "target", snapshot, ignore=shutil.ignore_patterns("*.safetensors"))
    shutil.copytree(mini / "dflash", tmp_path / "dflash")
    save_file({"x": np.zeros(4, np.float32)}, tmp_path / "dflash" / "model.safetensors")
    text = """
        name = "t"
        [target.mini]
        path = "org/target@c0ffee"
        [target.mini.drafters]
        dflash = "dflash"
        dspark = "mini:dspark"
        [server]
        context_length = 1024
        [[panel]]
        arms = ["ar", "dflash", "dspark"]
        [panel.sets.mini]
    """
    (tmp_path / "t.toml").write_text(text)
    command = [sys.executable, "-c", "from sglang_specbench.cli import main; main()", "plan", "t.toml", "--preflight"]
    environment = {**os.environ, "HF_HUB_CACHE": str(hub), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout[done.stdout.index("preflight ") :].splitlines()
    assert lines[:3] == ["preflight ar/none: ok", "preflight dflash/argmax: ok", "preflight dspark/argmax: ok"]
    assert lines[3] == f"weights of {snapshot}: not here, so not checked"
    assert lines[4] == "weights of dflash: no tensor of layer 0 (2 of 2 layers are absent)"
    assert lines[5].startswith(f"weights of {mini / 'dspark'}: names and shapes fit config.json")
    assert lines[6].startswith("not checked: memory, kernels")
    assert done.returncode == 2

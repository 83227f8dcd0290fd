"""SGLang's argument resolution of GPU launches on a machine that has no GPU."""

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sglang_specbench.launch import Launch
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

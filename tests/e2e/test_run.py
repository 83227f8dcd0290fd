"""`specbench run` on real SGLang servers, from tiny random checkpoints: measured, killed in the middle, resumed."""

import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.serve.processes import Leader
from harness.store import run as store
from harness.store.lock import RECORDS

CHECKPOINTS = Path(__file__).parent.parent / "cpu_server" / "checkpoints.py"
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
SWEEP = """
name = "tiny"
[target.tiny]
path = "{folder}/target"
[target.tiny.drafters]
dflash = "{folder}/dflash"
[server]
device = "cpu"
context_length = 512
[[panel]]
arms = ["ar", "dflash"]
concurrency = [1, 2]
sets = {{ chat = {{ max_new_tokens = 40 }} }}
"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep file beside its checkpoints and ``data/``; every second prompt has two turns."""
    folder = tmp_path_factory.mktemp("tiny") / "models"
    spec = importlib.util.spec_from_file_location("checkpoints", CHECKPOINTS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.make_all(folder)
    (folder / "target" / "chat_template.jinja").write_text(TEMPLATE)
    data = folder.parent / "data"
    data.mkdir()
    (data / "chat.toml").write_text(
        'name = "chat"\ntitle = "Chat"\nversion = 1\nlicence = "Apache-2.0"\nmax_new_tokens = 64\n'
    )
    rows = [{"id": f"p{i}", "turns": [f"hello {i}, what is {i * i}?", "and then?"][: 1 + i % 2]} for i in range(4)]
    (data / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder.parent / "sweep.toml"
    path.write_text(SWEEP.format(folder=folder))
    return path


@pytest.fixture
def start(sweep):
    """``start(out)``: `specbench run` as a process, killed at the end if it is still there."""
    started = []

    def run(out):
        command = [sys.executable, "-c", "from sglang_specbench.cli import main; main()", "run", str(sweep)]
        command += ["--data-dir", str(sweep.parent / "data"), "--out", str(out)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return started[-1]

    yield run
    for process in [process for process in started if process.poll() is None]:
        process.kill()
        process.communicate()


def leaders(out):
    return [Leader(**json.loads(path.read_text())) for path in (out / RECORDS).glob("*.json") if path.stat().st_size]


def ok_bytes(out):
    files = store.cell_files(out) if (out / "cells").is_dir() else []
    return {path.name: path.read_bytes() for path in files if store.read_header(path).outcome == "ok"}


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


@pytest.mark.sglang
@pytest.mark.torch
@pytest.mark.slow
def test_a_run_is_killed_resumed_and_whole(start, tmp_path):
    out = tmp_path / "run"
    first = start(out)
    wait_for(lambda: ok_bytes(out), seconds=600)
    (leader,) = leaders(out)
    assert len(leader.members()) >= 3  # the HTTP server, the scheduler, the detokenizer
    first.send_signal(signal.SIGKILL)
    first.communicate()
    kept = ok_bytes(out)
    wait_for(lambda: not leader.members(), seconds=30)

    second = start(out)
    text, _ = second.communicate(timeout=1500)
    assert second.returncode == 0, text
    assert {name: data for name, data in ok_bytes(out).items() if name in kept} == kept
    assert leaders(out) == []
    _check(out)


def _check(out):
    cells = [store.read(path) for path in store.cell_files(out)]
    assert sorted((h.cell.arm, h.cell.concurrency, h.cell.replica, h.outcome, len(rows)) for h, rows in cells) == [
        ("ar", 1, 0, "ok", 6), ("ar", 1, 1, "ok", 6), ("ar", 2, 0, "ok", 6), ("ar", 2, 1, "ok", 6),
        ("dflash", 1, 0, "ok", 6), ("dflash", 2, 0, "ok", 6),
    ]  # fmt: skip
    for header, rows in cells:
        assert header.attestation["arm"] == header.cell.arm
        assert header.environment["attested"] is True
        assert all(row.sent_s < row.first_token_s <= row.done_s for row in rows)
        assert all((row.verify_ct is not None) == (header.cell.arm == "dflash") for row in rows)
        assert all(row.cached_tokens == 0 and row.retractions == 0 for row in rows)
    outputs = {
        tuple((r.prompt_id, r.turn, r.output_hash) for r in rows) for h, rows in cells if h.cell.concurrency == 1
    }
    assert len(outputs) == 1  # greedy in float32: every arm writes what plain decoding writes
    assert "6/6" in (out / "table.md").read_text()

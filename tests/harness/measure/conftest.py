"""A tiny target and drafter, a sweep over them, and `specbench run` against the fake server of ``fake/``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from harness.measure.launch import Order, Session, Watchers
from harness.prompts.tokenized import Desk
from harness.store import run as store
from harness.sweep import plan

FAKE = Path(__file__).parent / "fake"
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
CONFIG = {"hidden_size": 8, "vocab_size": 300, "rope_theta": 1e6, "architectures": ["Qwen3ForCausalLM"]}
SWEEP = """
name = "tiny"
[target.tiny]
path = "{folder}/target"
[target.tiny.drafters]
dflash = "{folder}/dflash"
[server]
device = "cpu"
context_length = 512
start_timeout_s = 300
request_timeout_s = 60
[[panel]]
arms = ["ar", "dflash"]
temperatures = [0, 1]
concurrency = [1, 2]
sets = {{ chat = {{ prompts = 4, max_new_tokens = 24 }} }}
"""


def _model(folder, config):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file({"weight": np.zeros(2, np.float32)}, folder / "model.safetensors")


def _tokenizer(folder):
    words = Tokenizer(models.WordLevel({chr(i): i for i in range(256)}, unk_token="\0"))
    words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="\0")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)


def _prompts(folder):
    folder.mkdir()
    manifest = 'name = "chat"\ntitle = "Chat"\nversion = 1\nlicence = "Apache-2.0"\nmax_new_tokens = 64\n'
    (folder / "chat.toml").write_text(manifest)
    rows = [
        {"id": f"p{i}", "category": "ab"[i % 2], "turns": [f"hello {i}", "and then"][: 1 + i % 2]} for i in range(6)
    ]
    (folder / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """target/, dflash/, data/chat.jsonl (every second prompt has two turns) and sweep.toml."""
    folder = tmp_path_factory.mktemp("tiny")
    _model(folder / "target", CONFIG)
    _model(folder / "dflash", {**CONFIG, "architectures": ["DFlashDraftModel"], "block_size": 16})
    _tokenizer(folder / "target")
    _prompts(folder / "data")
    (folder / "sweep.toml").write_text(SWEEP.format(folder=folder))
    return folder


@pytest.fixture(scope="session")
def planned(files):
    """(sweep, plan)."""
    return plan.make(files / "sweep.toml", [files / "data"])


@pytest.fixture(scope="session")
def desk(files):
    return Desk(files / "target", [files / "data"])


@pytest.fixture
def fake(monkeypatch):
    """``fake(arm={fault: value})``: servers started from now on are fake and go wrong like that."""

    def install(**faults):
        monkeypatch.setenv("PYTHONPATH", str(FAKE))
        monkeypatch.setenv("FAKE_SGLANG", json.dumps({arm.replace("every", "*"): f for arm, f in faults.items()}))

    install()
    return install


class Run:
    """A run folder: filled by one launch in this process, or by `specbench run` in another."""

    def __init__(self, out, files, planned, desk):
        self.out, self.files, self.desk = out, files, desk
        self.sweep, self.plan = planned
        self.allocation = self.plan.allocations[0]
        self.started = []

    def launch(self, arm="dflash", cells=1, **order):
        """Measure the first ``cells`` cells of ``arm``'s first launch; their headers in order."""
        chosen = next(launch for launch in self.allocation.launches if launch.arm == arm)
        order = {"run_dir": self.out, "sweep": self.sweep, "data_dirs": (self.files / "data",), **order}
        headers = []
        Session(
            order=Order(**order),
            allocation=self.allocation,
            planned=chosen,
            desk=self.desk,
            watchers=Watchers(cell=headers.append),
            left=list(chosen.cells[:cells]),
        ).run()
        return headers

    def start(self, *flags, faults=None):
        """`specbench run` as a process."""
        env = {**os.environ, "PYTHONPATH": str(FAKE), "FAKE_SGLANG": json.dumps(faults or {})}
        code = "from sglang_specbench.cli import main; main()"
        command = [sys.executable, "-c", code, "run", str(self.files / "sweep.toml"), "--out", str(self.out)]
        command += ["--data-dir", str(self.files / "data"), *flags]
        started = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.started.append(started)
        return started

    def cells(self):
        """(header, rows) of every cell file."""
        return [store.read(path) for path in store.cell_files(self.out)]

    def bytes(self):
        """Name -> bytes of the ok cells' files."""
        return {p.name: p.read_bytes() for p in store.cell_files(self.out) if store.read_header(p).outcome == "ok"}

    def rows(self, header):
        return store.read(self.out / "cells" / f"{header.cell.id}.parquet")[1]


@pytest.fixture
def run(tmp_path, files, planned, desk):
    out = tmp_path / "run"
    out.mkdir()
    made = Run(out, files, planned, desk)
    yield made
    for process in [process for process in made.started if process.poll() is None]:
        process.kill()
        process.communicate()

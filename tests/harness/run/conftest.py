"""A tiny target and drafter, a sweep over them, and `specbench run` as a process against the fake server."""

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

from harness import store

HERE = Path(__file__).parent
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
start_timeout_s = 20
request_timeout_s = 3
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


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """target/, dflash/, data/chat.jsonl and sweep.toml."""
    folder = tmp_path_factory.mktemp("tiny")
    _model(folder / "target", CONFIG)
    draft = {**CONFIG, "architectures": ["DFlashDraftModel"], "block_size": 16}
    _model(folder / "dflash", draft)
    words = Tokenizer(models.WordLevel({chr(i): i for i in range(256)}, unk_token="\0"))
    words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="\0")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder / "target")
    data = folder / "data"
    data.mkdir()
    (data / "chat.toml").write_text(
        'name = "chat"\ntitle = "Chat"\nversion = 1\nlicence = "Apache-2.0"\nmax_new_tokens = 64\n'
    )
    rows = [
        {"id": f"p{i}", "category": "ab"[i % 2], "turns": [f"hello {i}", "and then"][: 1 + i % 2]} for i in range(6)
    ]
    (data / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "sweep.toml").write_text(SWEEP.format(folder=folder))
    return folder


class Run:
    """`specbench run` on the fake server, into one folder."""

    def __init__(self, files, out):
        self.files, self.out = files, out

    def start(self, *flags, faults=None, sweep=None, **kwargs):
        env = {
            **os.environ,
            "PYTHONPATH": f"{HERE / 'fake'}",
            "FAKE_SGLANG": json.dumps(faults or {}),
            "SPECBENCH_TRACEBACK": "0",
        }
        command = [sys.executable, "-c", "from sglang_specbench.cli import main; main()", "run"]
        command += [str(sweep or self.files / "sweep.toml"), "--data-dir", str(self.files / "data")]
        command += ["--out", str(self.out), *flags]
        options = {"env": env, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **kwargs}
        return subprocess.Popen(command, **options)

    def __call__(self, *flags, **kwargs):
        """Run to the end; (exit code, what it printed)."""
        process = self.start(*flags, **kwargs)
        text, _ = process.communicate(timeout=120)
        return process.returncode, text

    def headers(self):
        """(arm, temperature, concurrency, replica) -> header."""
        found = [store.read(path) for path in store.cell_files(self.out)]
        return {(h.cell.arm, h.cell.temperature, h.cell.concurrency, h.cell.replica): h for h, _ in found}

    def rows(self, arm, temperature, concurrency, replica=0):
        for path in store.cell_files(self.out):
            header, rows = store.read(path)
            cell = header.cell
            if (cell.arm, cell.temperature, cell.concurrency, cell.replica) == (arm, temperature, concurrency, replica):
                return rows
        raise AssertionError("no such cell")

    def bytes(self):
        return {path.name: path.read_bytes() for path in store.cell_files(self.out)}


@pytest.fixture
def run(files, tmp_path):
    return Run(files, tmp_path / "run")


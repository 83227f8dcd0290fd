"""Every reader and the commands over them, fed valid files with a few places changed: refused in one line, or read.

What a reader may raise is named per reader; anything else, and any example over `changes.SLOW`, fails.
"""

import gzip
import json

import pytest

from harness.audit import certificate_file
from harness.gate import baseline, history
from harness.prompts import load as prompts
from harness.schema.failure import Failure
from harness.serve.responses import Answer, ServerInfo
from harness.sweep import plan, sweep
from harness.sweep.plan import Plan
from sglang_specbench import checkpoint
from sglang_specbench.arms import ARMS
from tests.faults.changes import changed, fuzz, torn, written
from tests.faults.test_server import ANSWER
from tests.harness.made import DFLASH, TARGET, cell, model, sweep_text, toy

ROWS = [
    {"id": "a", "category": "x", "turns": ["one", "two"]},
    {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]},
]
MANIFEST = 'name = "s"\ntitle = "T"\nversion = 1\nlicence = "none"\nmax_new_tokens = 32\n'


@pytest.mark.parametrize("row", ROWS, ids=["turns", "messages"])
def test_rows_of_prompts(tmp_path, row):
    (tmp_path / "s.toml").write_text(MANIFEST)
    check = lambda: prompts.load("s", [tmp_path]).digest
    fuzz(changed(row), written(tmp_path / "s.jsonl", check, prompts.MissingSet))


def test_packed_rows_of_prompts(tmp_path):
    (tmp_path / "s.toml").write_text(MANIFEST)
    packed = gzip.compress(json.dumps(ROWS[0]).encode() * 3)
    check = lambda: prompts.load("s", [tmp_path]).digest
    fuzz(torn(packed), written(tmp_path / "s.jsonl.gz", check, prompts.MissingSet))


def test_rows_in_parquet(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "s.toml").write_text(MANIFEST)
    pq.write_table(pa.Table.from_pylist([ROWS[0]] * 3), tmp_path / "s.parquet")
    data = (tmp_path / "s.parquet").read_bytes()
    check = lambda: prompts.load("s", [tmp_path]).digest
    fuzz(torn(data), written(tmp_path / "s.parquet", check, prompts.MissingSet))


def test_manifests(tmp_path):
    (tmp_path / "s.jsonl").write_text(json.dumps(ROWS[0]))
    check = lambda: prompts.load("s", [tmp_path]).digest
    fuzz(torn(MANIFEST.encode()), written(tmp_path / "s.toml", check, prompts.MissingSet))


def test_sweeps(tmp_path):
    text = sweep_text(toy(tmp_path), temperatures=[0.0, 1.0]).encode()
    fuzz(torn(text), written(tmp_path / "s.toml", lambda: sweep.load(tmp_path / "s.toml")))


@pytest.mark.parametrize("kind", ["target", "dflash"])
def test_configs(tmp_path, kind):
    toy(tmp_path)

    def check():
        checkpoint.check_target(tmp_path / "target")
        checkpoint.check(tmp_path / "dflash", ARMS["dflash"], tmp_path / "target")

    good = TARGET if kind == "target" else DFLASH
    fuzz(changed(good), written(tmp_path / kind / "config.json", check))


def test_safetensors(tmp_path):
    data = (model(tmp_path / "m", TARGET, ("a", "b")) / "model.safetensors").read_bytes()
    fuzz(torn(data), written(tmp_path / "m" / "model.safetensors", lambda: checkpoint.tensor_names(tmp_path / "m")))


CERTIFICATE = {
    "arm": "dflash", "target_digest": "t", "draft_digest": "d", "versions": {"sglang": "0.5.23"}, "verdict": "pass",
    "attestation": {"device": "cpu", "dtype": "float32"}, "date": "2026-01-01", "samples": 8, "server": ["--x"],
    "rules": 2,
}  # fmt: skip


def test_certificates(tmp_path):
    asked = {**CERTIFICATE, **CERTIFICATE["attestation"], "versions": ("sglang 0.5.23",)}
    place = tmp_path / "c.json"
    check = lambda: certificate_file.speaks_for(certificate_file.load(place), asked)
    fuzz(changed(CERTIFICATE), written(place, check))


def test_baselines(tmp_path):
    good = {"run": "r", "fingerprint": "f", "accepted": "2026", "why": "w"}
    fuzz(changed(good), written(tmp_path / "b.json", lambda: baseline.load(tmp_path / "b.json")))


def test_histories(tmp_path):
    point = {"target": "t", "arm": "ar", "metric": "tau", "setting": "pooled", "value": 2.0, "low": None, "high": 3.0}
    good = {"run": "r", "time": "2026-01-01T00:00:00+00:00", "commit": "", "device_name": "", "versions": {"a": "b"},
            "noise": 0.1, "verdict": "", "points": [point], "schema": 1}  # fmt: skip
    fuzz(changed(good), written(tmp_path / "h.jsonl", lambda: history.read(tmp_path / "h.jsonl")))


def test_plans(tmp_path):
    launch = {"id": "i", "order": 0, "target_path": "t", "draft_path": "", "cells": [vars(cell())]}
    allocation = {"id": "a", "target": "t", "seed": 42, "repeat": 0, "launches": [launch]}
    good = {**Plan(name="n", allocations=()).to_json(), "allocations": [allocation]}

    check = lambda: [(c.id, c.label) for c in plan.read(tmp_path).cells]
    fuzz(changed(good), written(tmp_path / "plan.json", check))


def test_answers():
    def check(body):
        try:
            answer = Answer.parse(body)
        except Failure as failure:
            outcome = failure.outcome
        else:
            outcome = "invalid"
            assert all(0 <= i < 2**31 for i in (*answer.output_ids, *(answer.histogram or ())))
        assert outcome == "invalid"

    fuzz(changed(ANSWER), check)


def test_server_infos():
    good = {"served_model_name": "n", "version": "0.5.23", "specbench": {"window": 16, "threads": 1, "patches": {}},
            "internal_states": [{"specbench": {"downgrades": ["a"], "verification": "exact"}}]}  # fmt: skip

    def check(body):
        outcome = "invalid"
        try:
            ServerInfo.parse(body)
        except Failure as failure:
            outcome = failure.outcome
        assert outcome == "invalid"

    fuzz(changed(good), check)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan", "data", "status", "baseline", "dashboard"])
def test_commands(specbench, tmp_path, command):
    """Through the door of the shell: the codes that are promised, one line, no trace."""
    sweep_file = sweep_text(toy(tmp_path), temperatures=[0.0, 1.0]).encode()
    (tmp_path / "s.toml").write_text(MANIFEST)
    calls = {
        "plan": (tmp_path / "w.toml", torn(sweep_file), ("plan", tmp_path / "w.toml")),
        "data": (tmp_path / "s.jsonl", changed(ROWS[1]), ("data", "check", "s", "--data-dir", tmp_path)),
        "status": (tmp_path / "plan.json", changed({"name": "n", "allocations": []}), ("status", tmp_path)),
        "baseline": (tmp_path / "b.json", changed({"run": "r"}), ("baseline", "show", "--file", tmp_path / "b.json")),
        "dashboard": (tmp_path / "h.jsonl", changed({"schema": 1}), ("dashboard", "--history", tmp_path / "h.jsonl")),
    }
    path, strategy, call = calls[command]

    def check(example):
        path.write_bytes(example if isinstance(example, bytes) else json.dumps(example).encode(errors="surrogatepass"))
        done = specbench(*call)
        assert done.code in ((0, 1, 2) if command == "data" else (0, 2)), done
        assert done.code == 0 or done.code == 1 or done.err.count("\n") == 1, done
        assert "Traceback" not in done.out + done.err

    fuzz(strategy, check)

"""A secret is refused, or stands in no file, page or line that a run leaves."""

import json
import os
import subprocess
import sys
import time

import pytest

from harness.serve.client import says_ready
from harness.serve.server import free_port
from harness.store import run as store
from tests.harness.made import sweep_text, toy

HUSH = "hush-4f1c9a77"
SPELT = [
    ["--api-key", HUSH],
    [f"--api-key={HUSH}"],
    ["--api-k", HUSH],
    [f"--ap={HUSH}"],
    [f"--api-key {HUSH}"],
    ["--tool-call-parser", "x", "--admin-api-key", HUSH],
    [f"--ssl-keyfile-password={HUSH}"],
    ["--hf-token", HUSH],
    [f"--API-KEY={HUSH}"],
]
SAID = {
    "api_key": HUSH, "admin_api_key": HUSH, "ssl_keyfile_password": HUSH, "hf_token": HUSH, "key": HUSH,
    "model_loader_extra_config": {"a": {"api_key": HUSH}, "b": [{"secret": HUSH}]},
}  # fmt: skip


def left_behind(folder):
    """Files of ``folder`` that hold the secret; cell files are unpacked."""
    found = [p for p in folder.rglob("*") if p.is_file() and HUSH.encode() in p.read_bytes()]
    for path in folder.rglob("*.parquet"):
        header, rows = store.read(path)
        found += [path] if HUSH in header.to_json() + "".join(map(repr, rows)) else []
    return found


@pytest.mark.parametrize("args", SPELT, ids=lambda args: args[0].replace(HUSH, "X"))
@pytest.mark.parametrize("command", ["plan", "run", "audit"])
def test_an_argument_that_is_a_secret_is_refused_and_written_nowhere(specbench, tmp_path, command, args):
    text = sweep_text(toy(tmp_path / "toy")).replace("[[panel]]", f"[server]\nargs = {json.dumps(args)}\n[[panel]]", 1)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    sweep = tmp_path / "toy" / "s.toml"
    sweep.write_text(text)
    call = {"run": ("run", sweep, "--out", folder / "run"), "audit": ("audit", sweep, "--out", folder / "c")}
    assert HUSH not in specbench.refused(*call.get(command, (command, sweep)))
    assert left_behind(folder) == []


@pytest.mark.slow
def test_what_the_machine_and_a_server_know_is_not_kept(run, fake, specbench, monkeypatch, tmp_path):
    for name in ("HF_TOKEN", "SGLANG_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "SPECBENCH_PASSWORD"):
        monkeypatch.setenv(name, HUSH)
    fake(every={"arguments": SAID})
    flags = ("--out", run.out, "--data-dir", run.files / "data", "--only", "*T=0*c=1 r0", "--save-output")
    said = [specbench("run", run.files / "sweep.toml", *flags)]
    assert said[0].code == 0, said
    assert len(run.cells()) == 2
    said += [specbench("report", run.out, "--format", form) for form in ("term", "md", "html")]
    said += [specbench("tables", run.out, "--out", tmp_path / "tables"), specbench("status", run.out, "--json")]
    said += [specbench("dashboard", "--run", run.out, "--out", tmp_path / "site")]
    assert [done.code for done in said] == [0] * len(said), said
    assert HUSH not in "".join(done.out + done.err for done in said)
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_the_password_of_a_servers_address_is_not_kept(run, fake, specbench, tmp_path):
    fake()
    launch = next(launch for launch in run.plan.launches if launch.arm == "ar")
    server = launch.server(free_port())
    argv = [sys.executable, *server.argv, "--served-model-name", "mine"]
    process = subprocess.Popen(argv, env=server.environment(os.environ))
    try:
        deadline = time.monotonic() + 60
        while not says_ready(f"http://127.0.0.1:{server.port}"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        flags = ("--out", run.out, "--data-dir", run.files / "data", "--only", "*ar*T=0*c=1 r0")
        urls = [f"http://me:{HUSH}@127.0.0.1:{port}" for port in (server.port, free_port())]
        said = [specbench("run", run.files / "sweep.toml", *flags, "--server", url) for url in urls]
    finally:
        process.kill()
        process.wait()
    assert [h.outcome for h, _ in run.cells()] == ["ok"]
    assert HUSH not in "".join(done.out + done.err for done in said)
    assert left_behind(tmp_path) == []

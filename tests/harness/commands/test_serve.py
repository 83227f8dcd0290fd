"""`specbench serve` starts what a run starts, says where, and leaves nothing behind."""

import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.measure.launch import on_this_machine
from harness.sweep.one_launch import choose
from harness.sweep.plan import make
from harness.sweep.sweep import shipped
from sglang_specbench.cli import app
from sglang_specbench.errors import UserError

SPECBENCH = (sys.executable, "-c", "from sglang_specbench.cli import main; main()")


def printed(*arguments):
    done = CliRunner().invoke(app, ["serve", *arguments, "--print"], catch_exceptions=False)
    words = shlex.split(done.stdout)
    start = words.index("python")
    return dict(word.split("=", 1) for word in words[:start]), words[start:]


@pytest.mark.parametrize(("arm", "only", "place"), [("lilicorr", "* T=1 *", "sampled"), ("dflash2", "", "argmax")])
def test_it_prints_the_process_that_a_run_would_start(monkeypatch, arm, only, place):
    monkeypatch.setattr("sglang_specbench.device.gpus", tuple)
    _, plan = make("demo")
    planned = next(x for x in plan.launches if (x.arm, x.proposal) == (arm, place))
    launch = on_this_machine(planned, 30000)
    environment, command = printed("demo", "--arm", arm, "--port", "30000", *(["--only", only] if only else []))
    assert command == ["python", "-P", *launch.argv]
    assert environment.items() >= {**launch.environment(os.environ), **launch.env}.items() & environment.items()
    assert environment.items() >= {k: v for k, v in launch.env.items() if k != "PYTHONPATH"}.items()
    assert environment["PYTHONPATH"] == launch.environment(os.environ)["PYTHONPATH"]


def test_a_target_alone_is_served_within_its_own_context(monkeypatch):
    monkeypatch.setattr("sglang_specbench.device.gpus", tuple)
    _, command = printed("mini:target", "--concurrency", "3", "--port", "30001")
    assert command[command.index("--context-length") + 1] == "4096"  # of its config.json; a sweep's default is 8,192
    assert command[command.index("--max-running-requests") + 1] == "7"
    assert "--speculative-algorithm" not in command


def test_of_several_servers_the_first_is_taken_and_the_others_are_counted():
    assert choose("demo", "lilicorr", "", None).others == 1  # argmax at T=0, sampled at T=1
    assert choose("demo", "lilicorr", "* T=1 *", None).others == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mini:target", "dflash", "", None), "arm 'dflash' needs a drafter 'dflash' .*serve a sweep"),
        (("mini:nope", "ar", "", None), "serve: 'mini:nope': no folder"),
        (("demo", "eagle3", "", None), "has no arm 'eagle3'"),
        (("demo", "ar", "*qwen*", None), "matches no cell of arm 'ar' .*labels look like 'mini/ar mini T=0"),
        (("demo", "ar", "", 3), "--concurrency goes with a target alone"),
        (("mini:target", "ar", "*", None), "--only goes with a sweep"),
        (("nosuch.toml", "ar", "", None), "nosuch.toml: no such file"),
    ],
)
def test_what_cannot_be_served_is_one_clear_error(arguments, words):
    with pytest.raises(UserError, match=words):
        choose(*arguments)


@pytest.mark.parametrize(
    "arguments", [["run", "cuda.toml", "--out", "out"], ["serve", "cuda.toml"], ["audit", "cuda.toml"]]
)
def test_a_sweep_for_a_gpu_is_refused_once_where_there_is_none(monkeypatch, tmp_path, arguments):
    """Six servers died of it, one by one."""
    monkeypatch.setattr("sglang_specbench.device.gpus", tuple)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *more: found("json" if name == "sglang" else name, *more)
    )
    text = shipped()["demo"].read_text().replace("[server]", '[server]\ndevice = "cuda"')
    monkeypatch.chdir(tmp_path)
    Path("cuda.toml").write_text(text)
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, UserError)
    assert str(done.exception).startswith("cuda.toml: server.device: cuda: nvidia-smi finds no GPU")
    assert not Path("out").exists()


def _require_sglang():
    """Not by importing it: it decides once, at import, what it runs on, for every test after this one."""
    if importlib.util.find_spec("sglang") is None:
        pytest.skip("SGLang is not installed")


@pytest.mark.sglang
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_and_its_end_leaves_no_process_behind(name, tmp_path):
    _require_sglang()
    command = [*SPECBENCH, "serve", "demo", "--arm", "dflash"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), process.stderr.read()
            with urllib.request.urlopen(f"{url}/server_info", timeout=30) as answer:
                assert answer.status == 200
            assert _of(tmp_path)
        finally:
            process.send_signal(name)
        assert process.wait(60) == 0
        assert process.stdout.read() == ""
    assert _of(tmp_path) == []


@pytest.mark.sglang
def test_a_server_that_dies_is_reported_and_not_waited_for(tmp_path):
    _require_sglang()
    environment = {**os.environ, "TMPDIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(
        [*SPECBENCH, "serve", "mini:target"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline()
        for pid in _of(tmp_path):
            os.kill(pid, signal.SIGKILL)
        assert process.wait(60) == 5
        assert "server_died" in process.stderr.read()


def _of(folder: Path) -> list[int]:
    """Live processes of servers whose temporary files lie in ``folder``; the command itself is none."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (place / "environ").read_bytes(), (place / "cmdline").read_bytes()
            dead = (place / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        ours = f"TMPDIR={folder}\0".encode() in environment
        if ours and not dead and b"from sglang_specbench.cli import main" not in command:
            found.append(int(place.name))
    return found

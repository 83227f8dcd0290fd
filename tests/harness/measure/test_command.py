"""`specbench run` as a user meets it: resumed, killed, stopped, refused."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import typer

from harness.commands import run as command
from harness.serve.processes import Leader
from harness.serve.server import free_port
from harness.store import run as store
from harness.store.lock import RECORDS, hold
from sglang_specbench.errors import UserError


@pytest.fixture
def specbench_run(run):
    """The command in this process; returns its exit code."""

    def call(**options):
        options = {"sweep": str(run.files / "sweep.toml"), "out": run.out, "data_dir": [run.files / "data"], **options}
        try:
            command.run(**options)
        except typer.Exit as left:
            return left.exit_code
        return 0

    return call


def wait_for(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_a_failed_arm_is_measured_by_the_next_run_and_finished_cells_keep_their_bytes(run, fake, specbench_run, capsys):
    fake(dflash={"no_attestation": True})
    assert specbench_run(only="*c=1 r0") == 1
    assert "no attestation in /server_info" in capsys.readouterr().out
    assert "no attestation" in (run.out / "table.md").read_text()
    kept = run.bytes()
    assert len(kept) == 2  # AR at two temperatures; the closing bracket has another label

    fake()
    assert specbench_run(only="*c=1 r0") == 0
    assert specbench_run(only="*c=1 r0") == 0  # nothing left to do: no server is started
    assert {name: data for name, data in run.bytes().items() if name in kept} == kept
    assert len(run.bytes()) == 4
    assert (run.out / "sweep.toml").read_text() == (run.files / "sweep.toml").read_text()
    assert {h.environment["attested"] for h, _ in run.cells()} == {True}


def test_outputs_that_differ_from_ar_in_float32_are_a_failure(run, fake, specbench_run):
    fake(dflash={"other_outputs": True})
    assert specbench_run(only="*T=0*c=1 r0") == 1
    text = (run.out / "table.md").read_text()
    assert "0/6" in text
    assert "tiny/dflash chat c=1 r0: 0 of 6 greedy outputs equal AR's; the first that differs is of prompt p0" in text


def test_only_infrastructure_failures_exit_with_5(fake, specbench_run):
    fake(every={"dies_at_start": "no such flag"})
    assert specbench_run(only="*T=0*c=1 r0") == 5


def test_dry_run_writes_and_starts_nothing(run, fake, specbench_run, capsys):
    fake(every={"dies_at_start": "must not be started"})
    run.out.rmdir()
    assert specbench_run(dry_run=True) == 0
    assert "12 of 12 cells would be measured" in capsys.readouterr().out
    assert not run.out.exists()


def test_a_glob_that_matches_nothing_shows_a_label(fake, specbench_run):
    with pytest.raises(UserError, match=r"'nothing' matches no cell \(labels look like 'tiny/ar chat T=0 seed 42"):
        specbench_run(only="nothing")


def test_without_sglang_the_extra_is_named(fake, specbench_run, monkeypatch):
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"needs SGLang \(pip install \"sglang-specbench\[serve\]\"\)"):
        specbench_run()


def test_without_ray_the_extra_is_named(fake, specbench_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"needs Ray \(pip install \"sglang-specbench\[ray\]\"\)"):
        specbench_run(executor="ray")


def test_one_folder_has_one_run(run, fake, specbench_run):
    with hold(run.out), pytest.raises(UserError, match=rf"process {os.getpid()} is running it"):
        specbench_run()


@pytest.mark.parametrize("faults", [{}, {"no_attestation": True}])
def test_a_running_server_is_measured_and_unattested_rows_are_marked(run, fake, specbench_run, faults):
    fake(every=faults)
    launch = next(launch for launch in run.plan.launches if launch.arm == "dflash")
    server = launch.server(free_port())
    argv = [sys.executable, *server.argv, "--served-model-name", "mine"]
    process = subprocess.Popen(argv, env=server.environment(os.environ))
    try:
        url = f"http://127.0.0.1:{server.port}"
        wait_for(lambda: _answers(command.served_by, url, run))
        assert specbench_run(server=url, only="*dflash*T=0*") == 0
    finally:
        process.kill()
        process.wait()
    assert [h.cell.arm for h, _ in run.cells()] == ["dflash", "dflash"]
    assert {h.environment["attested"] for h, _ in run.cells()} == {not faults}
    (call,) = {h.call for h, _ in run.cells()}
    assert {h.allocation for h, _ in run.cells()} == {f"{run.allocation.id}@{call}"}  # no other call is in it
    assert {h.server_args["context_length"] for h, _ in run.cells()} == {512}
    assert {len(h.machine) for h, _ in run.cells()} == {0}  # its processes could not be told from others'
    assert ("DFlash † (unattested)" in (run.out / "table.md").read_text()) == bool(faults)


def _answers(served_by, url, run):
    cells = {c.id: c for c in run.plan.cells if c.arm == "dflash"}
    try:
        return bool(served_by(url, run.plan, cells))
    except UserError:
        return False


def test_a_server_that_serves_none_of_the_cells_is_refused(run, fake, specbench_run):
    with pytest.raises(UserError, match=r"is an SGLang .* server running there"):
        specbench_run(server=f"http://127.0.0.1:{free_port()}")


MOMENTS = {
    "before any server": lambda run: (run.out / ".lock").exists(),
    "while a server starts": lambda run: bool(_leaders(run)),
    "after a cell": lambda run: (run.out / "cells").is_dir() and len(run.bytes()) == 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_leaves_no_process_and_resumes(run, moment):
    process = run.start("--only", "*c=1 r0", faults={"*": {"request_s": 0.15}})
    wait_for(lambda: MOMENTS[moment](run))
    leaders = _leaders(run)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = run.bytes() if (run.out / "cells").is_dir() else {}
    wait_for(lambda: not any(leader.members() for leader in leaders))

    again = run.start("--only", "*c=1 r0")
    text, _ = again.communicate(timeout=600)
    assert again.returncode == 0, text
    assert {name: data for name, data in run.bytes().items() if name in kept} == kept
    assert len(run.cells()) == len(run.bytes()) == 4
    assert not _leaders(run)
    assert not list(run.out.rglob("*.partial"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_ends_its_server_and_says_how_to_go_on(run, name):
    process = run.start(faults={"*": {"request_s": 0.15, "child": True}})
    wait_for(lambda: _leaders(run) and any(len(leader.members()) > 1 for leader in _leaders(run)))
    leaders = _leaders(run)
    process.send_signal(name)
    text, _ = process.communicate(timeout=600)
    assert process.returncode == 130
    assert text.splitlines()[-1] == "stopped; finished cells are kept: run the same command to go on"
    assert not any(leader.members() for leader in leaders)
    assert not _leaders(run)


def _leaders(run):
    return [
        Leader(**json.loads(path.read_text())) for path in (run.out / RECORDS).glob("*.json") if path.stat().st_size
    ]


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_exit_5(run, files):
    """On a tmpfs of 64 KiB, most of it taken: nothing half-written stays."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(run.out)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        process = run.start("--only", "*T=0*")
        text, _ = process.communicate(timeout=600)
        assert process.returncode == 5, text
        assert "No space left on device" in text.splitlines()[-1]
        assert "Traceback" not in text
        assert not list(run.out.rglob("*.partial"))
        for path in store.cell_files(run.out):
            store.read(path)
    finally:
        subprocess.run(["umount", str(run.out)], check=True)


@pytest.mark.slow
def test_a_run_in_the_background_can_be_terminated(run):
    """A shell without job control starts background commands with SIGINT ignored."""
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = run.start(faults={"*": {"request_s": 0.15}})
    finally:
        signal.signal(signal.SIGINT, old)
    wait_for(lambda: _leaders(run))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert not _leaders(run)

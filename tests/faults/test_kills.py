"""A run that is stopped or killed at random moments loses nothing that was finished, and the next one goes on.

The moment and the signal come from a seed, which a failure names. 20 in CI, 200 with ``--long``.
"""

import random
import signal
import subprocess
import time

import pytest

from harness.serve.processes import Leader
from harness.store import run as store
from harness.store.lock import LOCK, RECORDS, hold
from sglang_specbench.config import from_dict
from sglang_specbench.foreign_file import read_object

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
LONGEST_S = 6.0  # after the run took its folder; its cells take about 0.2 s. One kill in five counts from the start
END_S = 90.0  # a stopped run has ended its servers within this


def leaders(out):
    found = [p for p in (out / RECORDS).glob("*.json") if p.stat().st_size]
    return [from_dict(Leader, read_object(p), str(p)) for p in found]


def kills(run, count, seed):
    """``count`` kills of runs of one folder, which starts anew when it is complete; cells finished between kills."""
    drawn, finished = random.Random(seed), 0
    for number in range(count):
        before = run.bytes() if (run.out / "cells").is_dir() else {}
        if len(before) == len(run.plan.cells):
            for path in store.cell_files(run.out):
                path.unlink()
            before = {}
        early, moment, name = drawn.random() < 0.2, drawn.uniform(0.0, LONGEST_S), drawn.choice(SIGNALS)
        what = f"seed {seed}, kill {number}: {name.name} after {moment:.3f} s{' of the process' if early else ''}"
        (run.out / LOCK).unlink(missing_ok=True)
        process = run.start()
        while not early and process.poll() is None and not (run.out / LOCK).exists():
            time.sleep(0.02)
        time.sleep(moment)
        seen, ours = leaders(run.out), (run.out / LOCK).exists()
        process.send_signal(name)
        text, _ = process.communicate(timeout=END_S)
        if ours:  # before, the signal may meet Python itself as it starts
            assert process.returncode in (0, 130, -name), (what, process.returncode, text)
            assert "Traceback" not in text, (what, text)
        deadline = time.monotonic() + END_S
        while any(leader.members() for leader in seen):  # of a SIGKILL the kernel takes the server along
            assert time.monotonic() < deadline, what
            time.sleep(0.05)
        after = run.bytes() if (run.out / "cells").is_dir() else {}
        assert {cell: data for cell, data in after.items() if cell in before} == before, what
        for path in store.cell_files(run.out):
            store.read(path)
        finished += len(after) - len(before)
    return finished


def complete(run):
    process = run.start()
    text, _ = process.communicate(timeout=600)
    assert process.returncode == 0, text
    assert len(run.bytes()) == len(run.plan.cells)
    assert not list(run.out.rglob("*.partial"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_twenty_kills_lose_nothing(run, seed):
    kills(run, 20, seed)
    complete(run)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 20))
def test_two_hundred_kills_lose_nothing(run, seed):
    finished = kills(run, 20, seed)
    print(f"seed {seed}: 20 kills, {finished} cells finished between them")
    complete(run)


@pytest.mark.slow
def test_a_second_run_on_the_folder_is_refused_and_the_first_goes_on(run):
    with hold(run.out):
        process = run.start()
        text, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert text.splitlines()[-1].endswith("is running it (wait for it, or take another --out)")


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_one_line(run):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", run.out], capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount a tmpfs")
    try:
        process = run.start()
        text, _ = process.communicate(timeout=120)
    finally:
        subprocess.run(["umount", run.out], check=True)
    assert process.returncode == 5, text
    assert "Read-only file system" in text.splitlines()[-1]
    assert "Traceback" not in text


@pytest.mark.slow
def test_a_run_whose_reader_has_gone_goes_on(run):
    """``specbench run | head -1`` stopped without a word."""
    process = run.start("--only", "*T=0*c=1 r0")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=300) == 0
    assert len(run.bytes()) == 2


def test_a_lost_ray_worker_is_tried_again_and_costs_its_own_cells(run, fake, monkeypatch):
    """A stand-in for Ray whose workers die: cells that were written stay, the others become rows after the second."""
    import sys
    from types import SimpleNamespace

    from harness.measure.launch import Order, Watchers
    from harness.measure.ray_executor import run_on_ray

    def remote(function):
        def call(order, task):
            sent.append(task)
            return lambda: function(order, task)

        return SimpleNamespace(remote=call)

    def get(reference):
        raise RuntimeError("The worker died\nunexpectedly")

    ray = SimpleNamespace(
        init=lambda **_: None, remote=lambda **_: remote, wait=lambda refs: (refs[:1], refs[1:]), get=get
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    run.launch(arm="ar", cells=1)
    seen, sent = [], []
    order = Order(run_dir=run.out, sweep=run.sweep, data_dirs=(run.files / "data",))
    run_on_ray(order, run.plan, {c.id: c for c in run.plan.cells}, Watchers(cell=seen.append))
    assert sorted(h.outcome for h in seen) == ["infrastructure"] * (len(run.plan.cells) - 1) + ["ok"]
    assert all("worker was lost 2 times: The worker died unexpectedly" in h.reason for h in seen if h.outcome != "ok")
    assert [task.tries for task in sent] == [0, 1]
    assert len(sent[1].cells) == len(run.plan.cells) - 1  # the one that was written is not measured again
    assert len(store.headers(run.out)) == len(run.plan.cells)

"""What is ours and what is somebody else's, on real processes and on made-up counters."""

import multiprocessing
import os
import time
from dataclasses import replace

import pytest

from harness.serve import machine_load
from harness.serve.machine_load import Snapshot, between, snapshot

IDLE = Snapshot(at=0.0, load=0.0, busy=0, steal=0, total=0, own={}, gpu={}, gpu_pids=())


def test_shares_add_up_and_ours_is_taken_off():
    after = replace(IDLE, at=2.0, load=3.0, busy=300, steal=40, total=400, own={10: 150, 11: 50})
    before = replace(IDLE, own={10: 100})  # 11 was started in between
    found = between(before, after)
    assert (found["other_cpu"], found["own_cpu"], found["steal"]) == (0.5, 0.25, 0.1)
    assert (found["load"], found["seconds"]) == ([0.0, 3.0], 2.0)


def test_a_process_on_the_gpu_is_foreign_only_if_it_is_here_and_not_ours():
    me, parent, nobody = os.getpid(), os.getppid(), 2**22 + 1
    seen = replace(IDLE, gpu={"clocks.sm": "1980"}, gpu_pids=(me, nobody), own={me: 1})
    assert between(seen, seen)["gpu_others"] == 0
    assert between(seen, replace(seen, gpu_pids=(me, parent)))["gpu_others"] == 1


def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.mark.parametrize("ours", [True, False])
def test_a_busy_process_counts_as_other_unless_it_is_ours(ours):
    """Half a second of one core: machine-wide counters say so, whatever else runs."""
    process = multiprocessing.get_context("spawn").Process(target=burn, args=(30,))
    process.start()
    try:
        while (machine_load._process_ticks(process.pid) or 0) < 100:
            time.sleep(0.05)  # it has started, and burns
        own = [process.pid] if ours else []
        before = snapshot(own, gpu=False)
        start = machine_load._process_ticks(process.pid)
        while (burnt := machine_load._process_ticks(process.pid) - start) < 50:
            time.sleep(0.05)
        after = snapshot(own, gpu=False)
    finally:
        process.kill()
        process.join()
    total = after.total - before.total
    found = between(before, after)
    if ours:
        assert found["own_cpu"] >= 0.9 * burnt / total
    else:
        assert found["other_cpu"] >= 0.9 * burnt / total
        assert found["own_cpu"] < 0.5 * burnt / total


def test_the_kernels_line_is_read_by_its_columns():
    assert machine_load._machine("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n") == (1 + 2 + 3 + 6 + 7, 8, 36)

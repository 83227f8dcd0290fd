"""Allocations side by side, a process each: the same rows as one after another, also when a worker is killed."""

import os
import signal
import threading
from dataclasses import replace

import pytest
import typer

from harness.commands import run as command
from harness.measure import lost_worker, side_by_side
from harness.measure.launch import Order, Watchers
from harness.measure.run import run_allocation
from harness.measure.side_by_side import gpus_each, places, run_side_by_side
from harness.measure.signals import one_way_to_stop
from harness.store import run as store
from harness.sweep import plan
from sglang_specbench.console import Console
from sglang_specbench.device import Gpu
from sglang_specbench.errors import UserError

H100 = [Gpu(index=i, name="NVIDIA H100", memory="80 GiB", driver="580", capability=90) for i in range(4)]


@pytest.fixture
def two(files, tmp_path):
    """(order of, plan): a sweep of two allocations, at temperature 0, so that every row is decided."""
    text = (files / "sweep.toml").read_text()
    text = text.replace('name = "tiny"\n', 'name = "tiny"\nrepeats = 2\n').replace(
        "temperatures = [0, 1]", "temperatures = [0]"
    )
    (tmp_path / "two.toml").write_text(text)
    sweep, made = plan.make(tmp_path / "two.toml", [files / "data"])
    assert len(made.allocations) == 2

    def order(name):
        (tmp_path / name).mkdir()
        return Order(run_dir=tmp_path / name, sweep=sweep, data_dirs=(files / "data",))

    return order, made


def rows(order):
    """Cell id -> what does not depend on the clock: prompts, counts, outputs, and where it was measured."""
    found = {}
    for path in store.cell_files(order.run_dir):
        header, measured = store.read(path)
        timeless = [replace(r, sent_s=0.0, first_token_s=None, done_s=0.0) for r in measured]
        found[header.cell.id] = (header.outcome, header.allocation, header.order, timeless)
    return found


def one_after_another(order, made):
    for allocation in made.allocations:
        run_allocation(order, allocation, [c.id for c in made.cells], Watchers())


@pytest.mark.slow
def test_two_devices_measure_what_one_does(two, fake):
    """Each allocation stays whole; its cells are those of a serial run, row by row."""
    order, made = two
    serial, parallel = order("serial"), order("parallel")
    one_after_another(serial, made)
    seen, talks = [], []
    watchers = Watchers(cell=seen.append, conversation=lambda: talks.append(1))
    run_side_by_side(parallel, made, {c.id: c for c in made.cells}, watchers, ["cpu", "cpu"])
    assert rows(parallel) == rows(serial)
    assert {h.cell.id for h in seen} == {c.id for c in made.cells}
    assert len(talks) == sum(c.prompts for c in made.cells)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 2])
def test_a_killed_worker_is_tried_once_more_and_the_other_goes_on(two, fake, monkeypatch, kills):
    """SIGKILL after the first finished cell: once, nothing is lacking; twice, its open cells are failure rows."""
    order, made = two
    killed, serial = order("killed"), order("serial")
    one_after_another(serial, made)
    first, started, seen = made.allocations[0].id, [], []
    start = side_by_side._start

    def watched(ordered, task, place):
        pipe, worker = start(ordered, task, place)
        if task.allocation.id == first:
            started.append(worker)
        return pipe, worker

    def cell(header):
        seen.append(header)
        if header.allocation == first and len(started) <= kills and started[-1].process.is_alive():
            os.kill(started[-1].process.pid, signal.SIGKILL)

    monkeypatch.setattr(side_by_side, "_start", watched)
    wanted = {c.id: c for c in made.cells}
    run_side_by_side(killed, made, wanted, Watchers(cell=cell), ["cpu", "cpu"])
    found, good = rows(killed), rows(serial)
    assert set(found) == set(good)
    lost = [i for i, row in found.items() if row[0] != "ok"]
    assert all(found[i] == good[i] for i in found if i not in lost)
    assert bool(lost) == (kills == 2)
    assert all(good[i][1] == first for i in lost)
    assert len(started) == lost_worker.TRIES
    reasons = {store.headers(killed.run_dir)[i].reason for i in lost}
    assert reasons <= {"its worker was lost 2 times: exit code -9"}


@pytest.mark.slow
def test_stopping_the_driver_ends_its_workers(two, fake):
    order, made = two
    stopped = order("stopped")
    threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    fake(every={"request_s": 0.5})
    with pytest.raises(KeyboardInterrupt), one_way_to_stop():
        run_side_by_side(stopped, made, {c.id: c for c in made.cells}, Watchers(), ["cpu", "cpu"])
    assert not list((stopped.run_dir / ".servers").glob("*.json"))


@pytest.mark.slow
def test_the_command_takes_devices_and_ends_with_its_report(two, tmp_path, files, fake, capsys):
    with pytest.raises(typer.Exit) as left:
        command.run(
            str(tmp_path / "two.toml"), out=tmp_path / "c", devices="cpu,cpu", data_dir=[files / "data"],
            only="", server="", executor="local", device="auto",
        )  # fmt: skip
    assert left.value.exit_code == 0
    made = two[1]
    assert {h.cell.id for h in store.headers(tmp_path / "c").values()} == {c.id for c in made.cells}
    assert "report: " in capsys.readouterr().out


@pytest.mark.parametrize("other", [{"executor": "ray"}, {"server": "http://x"}])
def test_devices_are_for_servers_that_are_started_here(two, tmp_path, files, other):
    asked = {"only": "", "server": "", "executor": "local", "device": "auto", **other}
    with pytest.raises(UserError, match="--devices is for servers that are started here"):
        command.run(str(tmp_path / "two.toml"), out=tmp_path / "c", devices="0", data_dir=[files / "data"], **asked)


def test_a_single_device_that_is_named_is_the_one_that_is_used(two, tmp_path, files, monkeypatch):
    """In this process it would be the first GPU that is visible."""
    taken = []
    monkeypatch.setattr(command, "places", lambda *_: ["3"])
    monkeypatch.setattr(command, "run_side_by_side", lambda *given: taken.append(given[-1]))
    order, made = two
    wanted = {c.id: c for c in made.cells}
    assert command.carry_out(order("one"), made, wanted, "local", Console(), "3") == []
    assert taken == [["3"]]


def test_every_gpu_is_taken_unless_some_are_named(monkeypatch):
    monkeypatch.setattr(side_by_side, "gpus", lambda: H100)
    assert places("", "cuda", 1) == ["0", "1", "2", "3"]
    assert places("3, 1", "cuda", 1) == ["3", "1"]
    assert places("", "cuda", 2) == ["0,1", "2,3"]
    assert places("", "cpu", 1) == ["cpu"]
    assert places("cpu,cpu", "cpu", 1) == ["cpu", "cpu"]


@pytest.mark.parametrize(
    ("asked", "device", "each", "message"),
    [
        ("7", "cuda", 1, "no GPU 7"), ("0,0", "cuda", 1, "named twice"), ("0", "cuda", 2, "takes 2 GPUs"),
        ("0", "cpu", 1, "served on the CPU"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_machine_is_refused(monkeypatch, asked, device, each, message):
    monkeypatch.setattr(side_by_side, "gpus", lambda: H100)
    with pytest.raises(UserError, match=message):
        places(asked, device, each)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [("", 1), ("--tp 2", 2), ("--tp-size=4", 4), ("--tensor-parallel-size 8 --x", 8), ("--tp 2 --tp 4", 4)],
)
def test_tensor_parallel_servers_ask_for_their_gpus(arguments, wanted):
    assert gpus_each(arguments.split()) == wanted

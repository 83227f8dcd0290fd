"""Allocations side by side on the devices of one machine: a process each, all arms of an allocation on one device.

The driver holds the run's lock; workers write their own cells and say how it goes through a pipe. A worker that ends
early costs what it has not written, after another try, and no other allocation.
"""

import ctypes
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from harness.measure.launch import Order, Watchers
from harness.measure.lost_worker import Task, after_loss
from harness.measure.run import run_allocation
from harness.measure.signals import one_way_to_stop
from harness.schema.cell import Cell
from harness.sweep.plan import Plan
from sglang_specbench.device import gpus
from sglang_specbench.errors import UserError

CPU = "cpu"
PARALLEL = ("--tp-size", "--tp", "--tensor-parallel-size")  # SGLang 0.5.23's names for GPUs that share one model
PR_SET_PDEATHSIG = 1  # prctl(2)


def gpus_each(arguments: Sequence[str]) -> int:
    """GPUs that one server of a sweep with these ``server.args`` takes."""
    found = 1
    for text, following in zip(arguments, (*arguments[1:], ""), strict=False):
        name, _, value = text.partition("=")
        if name in PARALLEL and (value or following).isdigit():
            found = int(value or following)  # the last one wins
    return found


def places(asked: str, device: str, each: int) -> list[str]:
    """Where allocations run at once: values of CUDA_VISIBLE_DEVICES with ``each`` GPUs, or ``cpu`` once or more.

    ``asked`` is a list with commas; "" takes every GPU, and the CPU once. `UserError` if it does not fit the machine.
    """
    named = [part.strip() for part in asked.split(",") if part.strip()]
    if device == CPU:
        if set(named) - {CPU}:
            raise UserError(f"--devices {asked}: the sweep is served on the CPU", "write cpu, as often as side by side")
        return named or [CPU]
    here = [str(gpu.index) for gpu in gpus()]
    if unknown := [name for name in named if name not in here]:
        raise UserError(f"--devices: no GPU {unknown[0]} that may be used", f"here are {', '.join(here) or 'none'}")
    if len(set(named)) < len(named):
        raise UserError(f"--devices {asked}: a GPU is named twice", "allocations would slow each other: name each once")
    chosen = named or here
    if each > max(len(chosen), 1):
        raise UserError(f"--devices: a server takes {each} GPUs, and there are {len(chosen)}", "lower --tp-size")
    return [",".join(chosen[i : i + each]) for i in range(0, len(chosen) - each + 1, each)]


@dataclass(frozen=True, kw_only=True)
class _Worker:
    process: BaseProcess
    place: str
    task: Task


def run_side_by_side(
    order: Order, plan: Plan, wanted: Mapping[str, Cell], watchers: Watchers, at: Sequence[str]
) -> None:
    """Measure ``wanted``, as many allocations at once as ``at`` has `places`."""
    waiting = deque(tasks(plan, wanted))
    free, busy = list(at), dict[Connection, _Worker]()  # by the pipe on which it is heard
    try:
        while waiting or busy:
            while waiting and free:
                pipe, worker = _start(order, waiting.popleft(), free.pop(0))
                busy[pipe] = worker
            ready = wait(list(busy))
            for pipe in [pipe for pipe in busy if pipe in ready]:
                said = _hear(pipe)
                if said is not None:
                    _pass_on(said, watchers)
                    continue
                worker = busy.pop(pipe)
                worker.process.join()
                free.append(worker.place)
                if worker.process.exitcode:
                    again, headers = after_loss(order, worker.task, f"exit code {worker.process.exitcode}")
                    watchers.note(f"{worker.task.allocation.id}: its worker on {worker.place} was lost")
                    waiting.extend([again] if again else [])
                    for header in headers if again is None else ():
                        if header.outcome != "ok":  # the others were reported when they ended
                            watchers.cell(header)
    finally:
        for worker in busy.values():
            worker.process.terminate()
        for worker in busy.values():
            worker.process.join()


def tasks(plan: Plan, wanted: Mapping[str, Cell]) -> list[Task]:
    """One for each allocation that has cells to be measured."""
    chosen = [(a, tuple(c for launch in a.launches for c in launch.cells if c.id in wanted)) for a in plan.allocations]
    return [Task(allocation=allocation, cells=cells) for allocation, cells in chosen if cells]


def _start(order: Order, task: Task, place: str) -> tuple[Connection, _Worker]:
    context = multiprocessing.get_context("spawn")  # a fork would copy the progress bar's thread half-way
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(order, task, place, theirs))
    process.start()
    theirs.close()  # so that the worker's end is the only one, and its death ends the pipe
    return ours, _Worker(process=process, place=place, task=task)


def _work(order: Order, task: Task, place: str, pipe: Connection) -> None:
    """In the worker: its device is the only one that it and its servers see."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if place != CPU:
        os.environ["CUDA_VISIBLE_DEVICES"] = place
    watchers = Watchers(
        note=lambda text: pipe.send(("note", text)),
        conversation=lambda: pipe.send(("conversation", None)),
        cell=lambda header: pipe.send(("cell", header)),
    )
    try:
        with one_way_to_stop():
            run_allocation(order, task.allocation, [cell.id for cell in task.cells], watchers)
    except (KeyboardInterrupt, BrokenPipeError):
        raise SystemExit(1) from None
    except UserError as error:
        pipe.send(("note", str(error)))
        raise SystemExit(1) from None


def _hear(pipe: Connection) -> tuple[str, Any] | None:
    """What the worker says next; None when it has ended."""
    try:
        said: tuple[str, Any] = pipe.recv()
    except (EOFError, OSError):
        return None
    return said


def _pass_on(said: tuple[str, Any], watchers: Watchers) -> None:
    kind, value = said
    if kind == "conversation":
        watchers.conversation()
    elif kind == "note":
        watchers.note(value)
    else:
        watchers.cell(value)

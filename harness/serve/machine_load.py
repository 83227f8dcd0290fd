"""What else ran on the machine while a cell was measured: the kernel's counters before and after, ours taken off.

CPU time of the whole machine comes from ``/proc/stat``, ours (the server's processes and this one) from
``/proc/PID/stat``; what is left is somebody else's. In a container both count the host, which is what is shared. GPU
facts come from nvidia-smi; a process on it is somebody else's only if its id is one of this machine and not ours, which
a container may not let us see. Linux only, like SGLang.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.serve.environment import nvidia_smi

_GPU = ("clocks.sm", "clocks.max.sm", "temperature.gpu", "power.draw", "clocks_throttle_reasons.active")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One moment."""

    at: float  # seconds of the monotonic clock
    load: float  # tasks that run or wait to, mean of the last minute
    busy: int  # ticks of all cores at work since boot, everybody's
    steal: int  # ticks that a hypervisor gave to others
    total: int
    own: Mapping[int, int]  # ticks by process of ours
    gpu: Mapping[str, str]
    gpu_pids: tuple[int, ...]  # processes that compute on it


def snapshot(own: Iterable[int], gpu: bool) -> Snapshot:
    """Now; ``own`` are the server's processes, to which this one is added."""
    busy, steal, total = _machine(Path("/proc/stat").read_text())
    ticks = {pid: t for pid in (*own, os.getpid()) if (t := _process_ticks(pid)) is not None}
    found = nvidia_smi(_GPU) if gpu else {}
    return Snapshot(
        at=time.monotonic(),
        load=round(os.getloadavg()[0], 2),
        busy=busy,
        steal=steal,
        total=total,
        own=ticks,
        gpu=found,
        gpu_pids=_gpu_processes() if gpu else (),
    )


def between(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """What a cell's header keeps: load, shares of the machine's cores, and what the GPU said at both ends.

    ``other_cpu`` and ``steal`` are shares (0 to 1) of all cores over the time between.
    """
    total = max(after.total - before.total, 1)
    own = sum(ticks - before.own.get(pid, 0) for pid, ticks in after.own.items())
    other = max(after.busy - before.busy - own, 0)
    found: dict[str, Any] = {
        "seconds": round(after.at - before.at, 3),
        "cores": os.cpu_count(),
        "load": [before.load, after.load],
        "own_cpu": round(own / total, 4),
        "other_cpu": round(other / total, 4),
        "steal": round((after.steal - before.steal) / total, 4),
    }
    if before.gpu or after.gpu:
        strangers = [pid for pid in (*before.gpu_pids, *after.gpu_pids) if _alive(pid) and pid not in after.own]
        found |= {"gpu": [dict(before.gpu), dict(after.gpu)], "gpu_others": len(set(strangers))}
    return found


def _machine(text: str) -> tuple[int, int, int]:
    """Ticks at work, stolen and in all, from ``/proc/stat`` (proc(5)); guests are part of user already."""
    user, nice, system, idle, wait, irq, softirq, steal = map(int, text.split("\n", 1)[0].split()[1:9])
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + idle + wait + steal


def _process_ticks(pid: int) -> int | None:
    """User and system ticks of a process with all its threads (proc(5): fields 14 and 15); None if it has ended."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return None


def _gpu_processes() -> tuple[int, ...]:
    lines = nvidia_smi(("pid",), "compute-apps").values()
    return tuple(int(pid) for line in lines for pid in line.split("\n") if pid.strip().isdigit())


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()

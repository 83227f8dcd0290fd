"""A run's folder as its one writer sees it: the lock, the records of servers, the logs.

``RUN/cells`` belongs to `store`, ``RUN/plan.json`` to `plan`. The lock is the kernel's (flock), so a killed harness
leaves none behind.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from harness.serve.processes import end_leftovers
from harness.store import run as store
from sglang_specbench.errors import UserError

LOCK = ".lock"
RECORDS = ".servers"


@contextlib.contextmanager
def hold(run_dir: Path) -> Iterator[list[int]]:
    """Own ``run_dir`` (made if need be) for the block; yields the pids of a killed run's servers, now ended.

    `UserError` if another process owns it or it cannot be made.
    """
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        handle = (run_dir / LOCK).open("a+")
    except OSError as error:
        raise UserError(f"{run_dir}: {error.strerror}", "choose another folder: --out", exit_code=5) from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            owner = handle.read().strip()
            raise UserError(f"{run_dir}: process {owner} is running it", "wait for it, or take another --out") from None
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        store.clean(run_dir)
        yield end_leftovers(run_dir / RECORDS)

"""The target's own server for as long as it is needed: ``specbench serve`` in a process of its own.

This package never sees SGLang or the harness; what is started, and how, is that command's to know. Its first line on
stdout is the URL.
"""

import contextlib
import ctypes
import signal
import subprocess
import sys
from collections.abc import Iterator

from sglang_specbench.errors import UserError

STOP_S = 90.0  # a server on a GPU drains and gives its memory back
PR_SET_PDEATHSIG = 1  # prctl(2)
_libc = ctypes.CDLL(None)
_SPECBENCH = (sys.executable, "-P", "-c", "from sglang_specbench.cli import main; main()")


@contextlib.contextmanager
def serving(target: str, concurrency: int) -> Iterator[str]:
    """URL of a server of ``target`` for ``concurrency`` requests at once; it is ended with the block.

    `UserError` if it does not come up; why stands on stderr by then.
    """
    command = [*_SPECBENCH, "serve", target, "--concurrency", str(concurrency)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is ours: it is ended once, below
        preexec_fn=_die_with_parent,
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            code = process.wait()
            raise UserError(f"generate: specbench serve {target} did not come up", "see above", exit_code=code or 5)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
        process.stdout.close()


def _die_with_parent() -> None:
    """In the child before exec: SIGTERM, which the command takes as its end, if we are killed outright."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

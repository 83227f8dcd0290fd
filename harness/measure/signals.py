"""One way to stop long work: SIGTERM and SIGHUP end it as Ctrl-C does, so that servers are ended and results stay."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

STOPPED = 130  # exit code, as a shell reports Ctrl-C
AGAIN_S = 0.05  # long enough to leave the finalizer that swallowed an interrupt


@contextlib.contextmanager
def one_way_to_stop() -> Iterator[None]:
    """Within the block, any of the three signals raises `KeyboardInterrupt`.

    A hang-up that nohup ignores stays ignored; an interrupt that a background shell ignores does not. An interrupt
    that falls into a finalizer, where Python drops every exception, is raised again.
    """
    reported = sys.unraisablehook
    sys.unraisablehook = lambda dropped: _again() if _interrupt(dropped) else reported(dropped)
    old = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in (signal.SIGTERM, signal.SIGHUP):
        if old[name] is not signal.SIG_IGN:
            signal.signal(name, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    except asyncio.CancelledError:  # what CPython 3.11 makes of an interrupt in the first moments of asyncio.run
        raise KeyboardInterrupt from None
    finally:
        for name, handler in old.items():
            signal.signal(name, handler)
        sys.unraisablehook = reported


def _interrupt(dropped: Any) -> bool:
    return issubclass(dropped.exc_type, KeyboardInterrupt)


def _again() -> None:
    timer = threading.Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()

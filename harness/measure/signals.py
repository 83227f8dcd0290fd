"""One way to stop long work: SIGTERM and SIGHUP end it as Ctrl-C does, so that servers are ended and results stay."""

import contextlib
import signal
from collections.abc import Iterator

STOPPED = 130  # exit code, as a shell reports Ctrl-C


@contextlib.contextmanager
def one_way_to_stop() -> Iterator[None]:
    """Within the block, any of the three signals raises `KeyboardInterrupt`.

    A hang-up that nohup ignores stays ignored; an interrupt that a background shell ignores does not.
    """
    old = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in (signal.SIGTERM, signal.SIGHUP):
        if old[name] is not signal.SIG_IGN:
            signal.signal(name, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for name, handler in old.items():
            signal.signal(name, handler)

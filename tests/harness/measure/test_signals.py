"""A request to stop is never lost."""

import asyncio
import os
import signal
import sys
import time

import pytest

from harness.measure.signals import one_way_to_stop


class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the interrupt is delivered between two of these
            pass


def stoppable(work):
    with one_way_to_stop():
        work()
        time.sleep(5)


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_is_an_interrupt(name):
    before = signal.signal(name, signal.SIG_DFL)  # nohup ignores SIGHUP, and so would the block
    try:
        with pytest.raises(KeyboardInterrupt):
            stoppable(lambda: os.kill(os.getpid(), name))
    finally:
        signal.signal(name, before)


def test_an_interrupt_that_a_finalizer_swallows_comes_again(capfd):
    """asyncio's transports have finalizers: a Ctrl-C in one of them was dropped, and the run went on."""
    with pytest.raises(KeyboardInterrupt):
        stoppable(Finalized)  # nobody keeps it: its finalizer runs at once
    assert "Traceback" not in capfd.readouterr().err


def test_other_dropped_exceptions_are_reported_as_before():
    seen, before = [], sys.unraisablehook
    sys.unraisablehook = seen.append
    try:
        with one_way_to_stop():
            sys.unraisablehook(type("Dropped", (), {"exc_type": ValueError})())
        assert len(seen) == 1
        assert sys.unraisablehook == seen.append
    finally:
        sys.unraisablehook = before


def test_an_interrupt_as_asyncio_starts_is_an_interrupt(monkeypatch):
    """asyncio.run counts interrupts from zero after it has set its handler: one that came in between is lost."""
    real = signal.signal

    def install(name, handler):
        old = real(name, handler)
        if getattr(handler, "func", None) is not None:  # asyncio's, a partial
            signal.raise_signal(name)
        return old

    async def work():
        await asyncio.sleep(60)

    def start():
        with one_way_to_stop(), monkeypatch.context() as patched:
            patched.setattr(signal, "signal", install)
            asyncio.run(work())

    with pytest.raises(KeyboardInterrupt):
        start()

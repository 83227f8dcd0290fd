"""The one way out of a command: from whatever was raised to one line on stderr and an exit code.

Code 2 (or the error's own): the user can fix it. Code 70: a fault of ours, whose trace is kept in a file. Code 5: the
machine has no room. 130: stopped; 141: the reader of the output has gone. Code 1 is never an accident: a command
raises it on purpose.
"""

import errno
import os
import sys
from typing import Any

import typer

from sglang_specbench import __version__
from sglang_specbench.errors import UserError

INTERNAL, STOPPED, CLOSED_PIPE, NO_ROOM = 70, 130, 141, 5  # 70: sysexits.h, EX_SOFTWARE
LONGEST = 4000  # characters of the line
# what only an extra brings -> the extra that a command without it needs
EXTRAS = {"torch": "train", "sglang": "serve", "ray": "ray"}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)

UsageError: Any = typer.BadParameter.__base__  # click's, or that of typer's copy of it


def prepare() -> None:
    """Any text can be printed: what the terminal's encoding lacks is shown by its number."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def leave(error: BaseException) -> int:
    """Say what ``error`` means to the user; the exit code."""
    closed = isinstance(error.__context__ if isinstance(error, SystemExit) else error, BrokenPipeError)
    if isinstance(error, SystemExit) and not closed:
        return _code_of(error)
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError":  # asyncio's is slow to import
        return STOPPED
    if closed:  # click makes a SystemExit(1) of it
        _close_stdout()
        return CLOSED_PIPE
    if os.environ.get("SPECBENCH_TRACEBACK") == "1":
        raise error
    if isinstance(error, UsageError):
        return _say(_usage(error), error.exit_code)
    if isinstance(error, UserError):
        return _say(f"specbench: {error}", error.exit_code)
    if isinstance(error, ModuleNotFoundError) and (extra := EXTRAS.get((error.name or "").partition(".")[0])):
        command = " ".join(sys.argv[1:2])
        return _say(f"specbench: {command} needs {error.name} (pip install 'sglang-specbench[{extra}]')", 2)
    if isinstance(error, OSError) and (error.errno in FULL or _is_users(error.filename)):
        return _say(*_of_the_system(error))
    return _internal(error)


def flush() -> None:
    """Write out what is still held back, so that a reader who has gone is noticed before the interpreter ends."""
    sys.stdout.flush()


def _of_the_system(error: OSError) -> tuple[str, int]:
    """A path that cannot be read or written, or a full disk."""
    what = f"{error.filename}: " if error.filename else "output: "
    full = error.errno in FULL
    remedy = "make room, then try again" if full else "check the path and its permissions"
    return f"specbench: {what}{error.strerror or error} ({remedy})", NO_ROOM if full else 2


def _is_users(filename: object) -> bool:
    """Is this path the user's, and not one of the package's own."""
    return filename is not None and "site-packages" not in str(filename)


def _internal(error: BaseException) -> int:
    import platform
    import tempfile
    import traceback

    lines = [f"sglang-specbench {__version__}, Python {platform.python_version()} on {platform.platform()}\n"]
    lines += [f"command: {' '.join(sys.argv[1:2])}\n", *traceback.format_exception(error)]
    try:
        handle, place = tempfile.mkstemp(prefix="specbench-trace-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(lines)
    except OSError:
        place = "below, because no file could be written:\n" + "".join(lines)
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    print(f"specbench: internal error: {what} (a fault of ours, please report it; its trace: {place})", file=sys.stderr)
    return INTERNAL


def _say(text: str, code: int) -> int:
    """One line, whatever was in the names that it quotes; the help of a group keeps its lines."""
    if not text.startswith("Usage:"):
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(text.split()))[:LONGEST]
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        return code  # nobody is there to read it
    return int(code)


def _usage(error: Any) -> str:
    """What click says in four lines; whole where it is the help of a group that was called without a command."""
    text = str(error.format_message())
    if text.startswith("Usage:"):
        return text
    path = error.ctx.command_path if error.ctx else "specbench"
    return f"specbench: {' '.join(text.split()).rstrip('.')} (see {path} --help)"


def _code_of(error: SystemExit) -> int:
    return error.code if isinstance(error.code, int) else INTERNAL if error.code else 0


def _close_stdout() -> None:
    """Python flushes stdout once more at its end: into nothing, then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

"""The one door for files that somebody else wrote: bounded in size, depth and length of numbers, whatever they hold.

A file is read by its size first, so that a fifo, a device or a bomb is refused and not waited for. What a library
raises while it reads becomes a `UserError` that names the file (and line) and the remedy. What the values mean, and
their types, is the caller's to check: see `config.from_dict`.
"""

import codecs
import contextlib
import json
import math
import re
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from sglang_specbench.errors import UserError

DOCUMENT_BYTES = 64 << 20  # of a JSON document: a plan of ten thousand cells has 10 MiB
TOML_BYTES = 1 << 20
TOML_LINE = 1 << 14  # tomllib's time grows with the square of the parts of a dotted key, which is one line
LINE_BYTES = 64 << 20  # of a JSONL file: a prompt of a million tokens has 5 MiB
LINES_BYTES = 4 << 30  # of a JSONL file, unpacked
DEPTH = 100
DIGITS = 20  # of a whole number: 64 bits
SHOWN = 200  # characters of a library's own words

REMEDY = "check the file"
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that may be half of a surrogate pair


class Lines(Protocol):
    """What is read line by line: a file, or one that is unpacked on the way."""

    def readline(self, limit: int, /) -> bytes: ...


def read_bytes(path: Path, limit: int = DOCUMENT_BYTES, remedy: str = REMEDY) -> bytes:
    """All of a regular file of at most ``limit`` bytes."""
    with open_file(path, limit, remedy) as handle, reading(path, remedy):
        return handle.read(limit)


def read_text(path: Path, limit: int = DOCUMENT_BYTES, remedy: str = REMEDY) -> str:
    """As `read_bytes`, decoded from UTF-8; a byte order mark is left out."""
    return decoded(read_bytes(path, limit, remedy), str(path), remedy)


def read_toml(path: Path, remedy: str = "correct the line it names") -> dict[str, Any]:
    """The table of a TOML file."""
    text = read_text(path, TOML_BYTES, remedy)
    longest = max(map(len, text.split("\n")))
    if longest > TOML_LINE:
        raise UserError(f"{path}: a line of {longest:,} characters", f"break it: at most {TOML_LINE:,}")
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: TOMLDecodeError, and numbers that int() refuses
        raise UserError(f"{path}: not valid TOML: {_words(error)}", remedy) from None
    _check_values(table, str(path), remedy)
    return table


def read_json(path: Path, remedy: str = REMEDY, limit: int = DOCUMENT_BYTES) -> Any:
    """The value of a JSON file."""
    return json_value(read_text(path, limit, remedy), str(path), remedy)


def read_object(path: Path, remedy: str = REMEDY) -> dict[str, Any]:
    """The object of a JSON file; another value is refused."""
    return _object(read_json(path, remedy), str(path), remedy)


def json_lines(path: Path, remedy: str = REMEDY, handle: Lines | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """(``path:line``, object) of every line that is not blank; ``handle``: the unpacked bytes of a packed file."""
    with contextlib.ExitStack() as stack:
        source: Lines = handle or stack.enter_context(open_file(path, LINES_BYTES, remedy))
        seen, lines = 0, iter(lambda: source.readline(LINE_BYTES + 1), b"")
        with reading(path, remedy):
            for number, line in enumerate(lines, 1):
                where, seen = f"{path}:{number}", seen + len(line)
                if len(line) > LINE_BYTES or seen > LINES_BYTES:
                    raise UserError(f"{where}: more than {LINE_BYTES:,} bytes a line or {LINES_BYTES:,} in all", remedy)
                if text := decoded(line, where, remedy).strip():
                    yield where, _object(json_value(text, where, remedy), where, remedy)


def json_value(text: str, where: str, remedy: str = REMEDY) -> Any:
    """The value of a JSON text: no NaN, no infinity, no number beyond 64 bits, no text that UTF-8 cannot hold."""
    try:
        value = _JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON that can be used: {_words(error)}", remedy) from None
    _check_values(value, where, remedy, deep=text.count("[") + text.count("{") > DEPTH, odd=bool(_HALF.search(text)))
    return value


def decoded(data: bytes, where: str, remedy: str = REMEDY) -> str:
    """``data`` as UTF-8, without a byte order mark."""
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8: byte {error.start} is 0x{data[error.start]:02x}", remedy) from None


def open_file(path: Path, limit: int, remedy: str = REMEDY) -> IO[bytes]:
    """A regular file of at most ``limit`` bytes, open for reading; `UserError` for anything else."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise UserError(f"{path}: not a regular file", "name a file")
        if found.st_size > limit:
            raise UserError(f"{path}: {found.st_size:,} bytes, more than {limit:,}", remedy)
        return path.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file", "check the path" if remedy == REMEDY else remedy) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UserError(
            f"{str(path)!r}: cannot be read: {_words(error)}", "check the file and its permissions"
        ) from None


@contextlib.contextmanager
def reading(where: Path | str, remedy: str = REMEDY, what: str = "cannot be read") -> Iterator[None]:
    """For a call of a library that reads ``where``: whatever it raises is a fault of the file."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - gzip, zlib, pyarrow, safetensors and tokenizers raise what they like
        raise UserError(f"{where}: {what}: {_words(error)}", remedy) from None


def _object(value: Any, where: str, remedy: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where}: expected an object, got {type(value).__name__}", remedy)
    return value


def _check_values(value: Any, where: str, remedy: str, deep: bool = True, odd: bool = True) -> None:
    """Depth, numbers and text of a parsed value, without recursion. ``deep``, ``odd``: is there any need to look."""
    level, depth = [value], 0
    while level and (deep or odd):
        if depth > DEPTH:
            raise UserError(f"{where}: nested more than {DEPTH} deep", remedy)
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str):
                _check_text(item, where, remedy)
            elif isinstance(item, int) and item.bit_length() > 64:
                raise UserError(f"{where}: a number of {item.bit_length()} bits", remedy)
        level, depth = below, depth + 1


def _check_text(text: str, where: str, remedy: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        raise UserError(f"{where}: half of a surrogate pair ({half}), which UTF-8 cannot hold", remedy) from None


def _whole(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _real(text: str) -> float:
    value = float(text) if len(text) <= 1000 else math.inf
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]} is beyond what a float holds")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _words(error: BaseException) -> str:
    """What a library said, in one short line."""
    if isinstance(error, RecursionError):
        return f"nested more than {DEPTH} deep"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:SHOWN]


_JSON = json.JSONDecoder(parse_int=_whole, parse_float=_real, parse_constant=_no_constant)

"""TOML or JSON to frozen dataclasses: one loader and one style of complaint for every file a user writes.

Knows types, defaults and near names. Knows nothing of what the keys mean: a dataclass checks its own values in
``__post_init__`` and raises ``ValueError`` ("what is wrong: what to write"), which becomes a `UserError` naming the
file and table here.
"""

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import read_toml

T = TypeVar("T")
LONGEST_NAME = 100  # characters of a word that a near one is looked for: the search takes the square of them

# what to write for a value that is no table, list or choice
_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text in quotes",
    bool: "true or false",
    Path: "text in quotes",
}


def load_toml(path: Path) -> dict[str, Any]:
    """Parsed TOML of ``path``; `UserError` if it is absent, unreadable, too large or not TOML."""
    return read_toml(path)


def from_dict(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """Build the dataclass ``cls`` from ``table``; ``where`` is the file (and table) named in errors.

    Unknown keys, missing keys, wrong types and a ``ValueError`` of the class raise `UserError`.
    """
    if not isinstance(table, Mapping):
        raise UserError(f"{where}: expected a table, got {type(table).__name__}", "write key = value lines")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for key in table:
        if key not in fields:
            raise UserError(f"{where}: unknown key {_shown(key)}", near_name(key, fields))
    missing = [n for n, f in fields.items() if n not in table and _required(f)]
    if missing:
        raise UserError(f"{where}: missing key {missing[0]!r}", f"add it: {_words(hints[missing[0]])}")
    values = {key: _convert(hints[key], value, f"{where}: {key}") for key, value in table.items()}
    try:
        return cls(**values)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None  # its text ends in the remedy


def near_name(word: str, known: typing.Iterable[str]) -> str:
    """The hint for a misspelt name: the nearest known one, or the whole list."""
    names = sorted(known)
    lowered = {name.lower(): name for name in names}  # GSM8K is gsm8k
    near = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6) if len(word) <= LONGEST_NAME else []
    return f"did you mean {lowered[near[0]]!r}?" if near else f"known: {', '.join(names)}"


def _required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _words(hint: Any) -> str:
    """What to write for a value of type ``hint``."""
    if typing.get_origin(hint) is tuple:
        return "a list"
    if typing.get_origin(hint) is typing.Literal:
        return f"one of {', '.join(map(repr, typing.get_args(hint)))}"
    return _WORDS.get(hint, "a table")


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(args, value, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_dict(hint, value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{where}: expected a list, got {_shown(value)}", "write [a, b]")
        return tuple(_convert(args[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise UserError(f"{where}: expected a table, got {_shown(value)}", "write key = value lines")
        return {str(k): _convert(args[1], v, f"{where}.{k}") for k, v in value.items()}
    if origin is typing.Literal:
        if not any(type(value) is type(arg) and value == arg for arg in args):
            raise UserError(f"{where}: {_shown(value)} is not one of {', '.join(map(repr, args))}", "write one of them")
        return value
    return _convert_scalar(hint, value, where)


def _convert_union(args: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in args:
        return None
    errors = []
    for option in (a for a in args if a is not type(None)):
        try:
            return _convert(option, value, where)
        except UserError as error:
            errors.append(error)
    raise errors[0]


def _convert_scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is float and isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{where}: {value} is no finite number", "write a number")
    if isinstance(value, str) and "\0" in value:
        raise UserError(f"{where}: {_shown(value)} holds a NUL", "leave it out")
    if hint is Path and isinstance(value, str):
        return Path(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise UserError(f"{where}: expected {hint.__name__}, got {_shown(value)}", f"write {_words(hint)}")
    return value


def _shown(value: Any) -> str:
    """``value`` as it was written, cut short."""
    text = repr(value)
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}..."

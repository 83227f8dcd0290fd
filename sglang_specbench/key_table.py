"""The keys of a file as a Markdown table, for the reference pages: read from the dataclass that reads the file.

The meaning of a key is the comment beside its field, and the comment lines right below it; a field without one is an
error here, so that no key can go undocumented. Fields that do not compare are no keys: the loader fills them.
"""

import ast
import dataclasses
import inspect
import io
import json
import textwrap
import tokenize
import types
import typing
from collections.abc import Collection
from typing import Any

_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false", Any: "anything"}


def key_table(cls: type[Any], without: Collection[str] = (), required: str = "required") -> str:
    """Key, type, default and meaning of the fields of the dataclass or TypedDict ``cls`` but those ``without``.

    ``required`` stands where there is no default. `ValueError` for a field that has no comment.
    """
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    meanings, hints = _meanings(cls), typing.get_type_hints(cls)
    for name, default in _defaults(cls, required).items():
        if name in without:
            continue
        if not meanings.get(name):
            raise ValueError(f"{cls.__name__}.{name} has no comment to take its meaning from")
        cells = (f"`{name}`", _written(hints[name]), default, meanings[name])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _defaults(cls: type[Any], required: str) -> dict[str, str]:
    if typing.is_typeddict(cls):
        return {name: required if name in cls.__required_keys__ else "" for name in cls.__annotations__}
    return {field.name: _default(field, required) for field in dataclasses.fields(cls) if field.compare}


def _default(field: "dataclasses.Field[Any]", required: str) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return ""
    if field.default is dataclasses.MISSING:
        return required
    return f"`{json.dumps(field.default)}`"


def _written(hint: Any) -> str:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in args)
    if origin in (tuple, list):
        return f"list of {_written(args[0])}"
    if origin is dict:
        return f"table of {_written(args[1])}"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_written(arg) for arg in args if arg is not type(None))
    return _WORDS.get(hint, "table")


def _meanings(cls: type[Any]) -> dict[str, str]:
    source = textwrap.dedent(inspect.getsource(cls))
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type == tokenize.COMMENT]
    comments = {t.start[0]: t.string.lstrip("# ") for t in tokens}
    alone = {t.start[0] for t in tokens if t.line.lstrip().startswith("#")}
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.end_lineno or node.lineno
            while last + 1 in alone:
                last += 1
            found[node.target.id] = " ".join(comments[n] for n in range(node.lineno, last + 1) if n in comments)
    return found

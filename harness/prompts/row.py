"""From a row as somebody published it to a `Prompt`: every field's type is looked at before its value is used.

A ``messages`` row may open with a system message, which is sent. Its other turns must be the user's: what an assistant
or a tool said in it would stand where the measured model's own answer stands, so such a row is refused.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from harness.prompts.manifest import Manifest
from harness.prompts.prompt_set import Prompt
from sglang_specbench.errors import UserError

_MESSAGE = ("role", "content")  # another key that holds something would not reach the model


class _Wrong(Exception):
    """What is wrong with a row, and what to write."""


def make_prompt(wanted: Manifest, index: int, row: Mapping[str, Any], where: Path | str) -> Prompt:
    """One row in any form; a copy without ids gets the manifest's, or is numbered. `UserError` naming ``where``."""
    try:
        for key in ("tools", "functions"):
            if row.get(key):
                raise _Wrong(f"{key}: they would not be sent (remove them, or take another set)")
        system, turns = _talk(wanted, row)
        category = row.get("category") or row.get(wanted.wording.category) or ""
        return Prompt(
            id=_identity(wanted, index, row),
            turns=turns,
            system=system,
            category=_word(category, "category"),
        )
    except KeyError as error:
        hint = "expected turns, messages or the source's own fields"
        raise UserError(f"{where}: row {index}: no field {error} in it", hint) from None
    except (_Wrong, ValueError) as error:  # ValueError: a template's placeholder that is none
        raise UserError(f"{where}: row {index}: {error}") from None


def _talk(wanted: Manifest, row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """System message and the user's turns of a row in any of the forms; `KeyError` names a field that it lacks."""
    if "turns" in row:
        return _text(row["system"], "system") if row.get("system") else "", _turns(row["turns"], "turns")
    if "messages" in row:
        return _messages(row["messages"])
    wording = wanted.wording
    if wording.turns:
        return "", _turns(row[wording.turns], wording.turns)
    empty = wording.optional and not row[wording.optional]
    template = Template(wording.template_without if empty else wording.template)
    return "", (template.substitute({name: _text(row[name], name) for name in template.get_identifiers()}),)


def _turns(value: Any, key: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence):
        raise _Wrong(f"{key}: {_kind(value)} (write a list of texts)")
    return tuple(_text(turn, f"{key}[{i}]") for i, turn in enumerate(value))


def _messages(value: Any) -> tuple[str, tuple[str, ...]]:
    if not isinstance(value, list):
        raise _Wrong(f'messages: {_kind(value)} (write a list of {{"role", "content"}})')
    system, turns = "", list[str]()
    for i, message in enumerate(value):
        where = f"messages[{i}]"
        if not isinstance(message, Mapping):
            raise _Wrong(f'{where}: {_kind(message)} (write {{"role", "content"}})')
        role = _text(message.get("role"), f"{where}.role")
        more = [key for key, held in message.items() if key not in _MESSAGE and held]
        if more:
            raise _Wrong(f"{where}.{more[0]}: it would not be sent (remove it, or take another set)")
        text = _text(message.get("content"), f"{where}.content")
        if role == "system" and not i:
            system = text
        elif role == "user":
            turns.append(text)
        else:
            raise _Wrong(f"{where}: a turn of role {role[:40]!r}: only the user's are sent (write them as turns)")
    return system, tuple(turns)


def _identity(wanted: Manifest, index: int, row: Mapping[str, Any]) -> str:
    if row.get("id") not in (None, ""):
        return _word(row["id"], "id")
    template = Template(wanted.wording.id)
    named = {name: row[name] for name in template.get_identifiers() if name in row}
    made = template.safe_substitute({name: _word(value, name) for name, value in named.items()}, index=index)
    return str(index) if "$" in made else made


def _word(value: Any, key: str) -> str:
    """A text, or a whole number as one."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value, key)


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"{key}: {_kind(value)} (write text)")
    return value


def _kind(value: Any) -> str:
    names = {type(None): "null", dict: "an object", list: "a list", bool: "true or false", bytes: "bytes"}
    return names.get(type(value), f"a value of type {type(value).__name__}")

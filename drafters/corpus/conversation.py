"""A corpus as it lies on disk: JSON Lines, one conversation each.

Works without torch.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import json_lines

REMEDY = 'write {"id", "category", "messages": [{"role", "content"}]}'


class Message(TypedDict):
    """One turn."""

    role: str  # `system` (the first only), `user` or `assistant`
    content: str  # plain text


class Line(TypedDict):
    """One line, as ``specbench generate`` reads and writes it; further keys are left alone."""

    id: str  # one for each line of a file: a second call of `specbench generate` goes by it
    messages: NotRequired[list[Message]]  # turns in order, `user` and `assistant` in turn; absent beside `error`
    category: NotRequired[str]  # for people
    error: NotRequired[str]  # why there is no answer: a recorded failure, which training drops and counts
    cut: NotRequired[int]  # answers that the token limit ended
    prompt_ids: NotRequired[list[int]]  # of a single answer: what the server was sent
    output_ids: NotRequired[list[int]]  # of a single answer: what the server said


@dataclass(frozen=True)
class Conversation:
    """Turns in order, roles alternating user and assistant after an optional system message.

    ``exact`` is (prompt ids, answer ids) of the one answer when whoever generated it kept the tokens themselves.
    """

    id: str
    category: str
    messages: tuple[dict[str, str], ...]
    exact: tuple[list[int], list[int]] | None = None
    cut: bool = False  # an answer of it reached the token limit

    @classmethod
    def from_row(cls, row: dict[str, Any], where: str) -> "Conversation":
        """`UserError` naming ``where`` when ``row`` lacks a key or a message has no role or text."""
        messages = row.get("messages")
        if not isinstance(messages, list) or not all(map(_is_message, messages)):
            raise UserError(f"{where}: messages: expected a list of objects with a role and a content of text", REMEDY)
        if not isinstance(row.get("id"), str | int):
            raise UserError(f"{where}: id: expected text, got {row.get('id')!r:.80}", REMEDY)
        if "output_ids" in row and not (_is_ids(row.get("prompt_ids")) and _is_ids(row["output_ids"])):
            raise UserError(f"{where}: prompt_ids, output_ids: expected lists of token ids", REMEDY)
        exact = (row["prompt_ids"], row["output_ids"]) if "output_ids" in row else None
        said = tuple({"role": m["role"], "content": m["content"]} for m in messages)
        return cls(str(row["id"]), str(row.get("category", "")), said, exact, bool(row.get("cut")))


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("role", "content"))


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 1 << 31 for item in value)


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(``path:line``, object) of every line of a JSONL file; `UserError` on a line that is no JSON object."""
    yield from json_lines(path, "delete the line, or write the file anew")


def read_conversations(path: Path, failures: Counter[str] | None = None) -> Iterator[Conversation]:
    """Every conversation of ``path`` but the recorded failures, which ``failures`` counts.

    `UserError` when two have one id: a second call of `specbench generate` could not tell them apart.
    """
    seen: set[str] = set()
    for where, row in read_rows(path):
        if "error" in row:
            if failures is not None:
                failures["dropped: a recorded failure"] += 1
            continue
        conversation = Conversation.from_row(row, where)
        if conversation.id in seen:
            raise UserError(f"{where}: the id {conversation.id!r} for a second time", "give every line its own id")
        seen.add(conversation.id)
        yield conversation

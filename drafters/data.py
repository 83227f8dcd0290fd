"""Conversations to training samples: rendered as they are served, tokenised, loss on the target's own answers.

A corpus is JSON Lines, one conversation each: ``{"id", "category", "messages": [{"role", "content"}, ...]}`` (what
``specbench generate`` writes; a line with ``error`` instead of an answer is a recorded failure and is no sample; the
``prompt_ids`` and ``output_ids`` of a single answer are taken as they are when a line has them).
The loss mask covers each answer and the end-of-turn token that closes it. It leaves out everything the template adds
before the answer, an empty ``<think>`` preamble included, because at serving time that is part of the prompt.

Not here: the order of samples (`batches`), anchors (`anchors`), or where conversations come from (`nemotron`,
`generate`).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sglang_specbench.errors import UserError


@dataclass(frozen=True)
class Conversation:
    """Turns in order, roles alternating user and assistant after an optional system message.

    ``exact`` is (prompt ids, answer ids) of the one answer when whoever generated it kept the tokens themselves.
    """

    id: str
    category: str
    messages: tuple[dict[str, str], ...]
    exact: tuple[list[int], list[int]] | None = None

    @classmethod
    def from_row(cls, row: dict[str, Any], where: str) -> "Conversation":
        """`UserError` naming ``where`` when ``row`` lacks a key or a message has no role or text."""
        try:
            messages = tuple({"role": m["role"], "content": m["content"]} for m in row["messages"])
            exact = (row["prompt_ids"], row["output_ids"]) if "output_ids" in row else None
            return cls(str(row["id"]), str(row.get("category", "")), messages, exact)
        except (KeyError, TypeError) as error:
            raise UserError(
                f"{where}: not a conversation: {error!r}",
                'write {"id", "category", "messages": [{"role", "content"}]}',
            ) from None


@dataclass(frozen=True)
class Sample:
    """One rendered conversation: ``ids_S`` int64 token ids, ``loss_S`` bool, true on supervised tokens."""

    id: str
    category: str
    ids_S: Tensor
    loss_S: Tensor


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(``path:line``, object) of every line of a JSONL file; `UserError` on a line that is no JSON object."""
    if not path.is_file():
        raise UserError(f"{path}: no such file", "check the path")
    with path.open(encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            where = f"{path}:{number}"
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise UserError(f"{where}: not JSON: {error}", "delete the line, or write the file anew") from None
            if not isinstance(row, dict):
                raise UserError(f"{where}: not an object", 'write {"id", "category", "messages"}')
            yield where, row


def read_conversations(path: Path) -> Iterator[Conversation]:
    """Every conversation of ``path`` but the recorded failures."""
    for where, row in read_rows(path):
        if "error" not in row:
            yield Conversation.from_row(row, where)


def read_samples(path: Path, tokenizer: Any, length: int) -> list[Sample]:
    """The corpus at ``path`` as samples of at most ``length`` tokens.

    Conversations that leave no anchor (no two consecutive supervised tokens) are dropped; `UserError` if none is left.
    """
    samples = [render(c, tokenizer, length) for c in read_conversations(path)]
    kept = [s for s in samples if bool((s.loss_S[:-1] & s.loss_S[1:]).any())]
    if not kept:
        raise UserError(f"{path}: no conversation has an answer of two tokens", "regenerate the corpus first")
    return kept


def render(conversation: Conversation, tokenizer: Any, length: int) -> Sample:
    """Template, tokenise, mask and cut to ``length`` tokens; thinking is off, as at serving time."""
    ids, loss = _exact(conversation.exact) if conversation.exact else _tokenised(conversation, tokenizer)
    ids_S, loss_S = torch.tensor(ids[:length]), torch.tensor(loss[:length])
    return Sample(conversation.id, conversation.category, ids_S, loss_S)


def _exact(exact: tuple[list[int], list[int]]) -> tuple[list[int], list[bool]]:
    prompt, answer = exact
    return prompt + answer, [False] * len(prompt) + [True] * len(answer)


def _tokenised(conversation: Conversation, tokenizer: Any) -> tuple[list[int], list[bool]]:
    text = tokenizer.apply_chat_template(list(conversation.messages), tokenize=False, enable_thinking=False)
    spans = _answer_spans(conversation, text, tokenizer.eos_token)
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    loss = [any(lo <= start and end <= hi for lo, hi in spans) for start, end in encoded["offset_mapping"]]
    return encoded["input_ids"], loss


def _answer_spans(conversation: Conversation, text: str, eos: str) -> list[tuple[int, int]]:
    """Character spans of the answers in the rendered ``text``, each with its closing ``eos``."""
    spans, cursor = [], 0
    for message in conversation.messages:
        content = message["content"].strip()
        start = text.find(content, cursor)
        if start < 0:
            raise UserError(
                f"conversation {conversation.id}: the chat template rewrites a message",
                "regenerate it with thinking off",
            )
        cursor = start + len(content)
        if message["role"] == "assistant" and content:
            cursor = text.find(eos, cursor) + len(eos)
            spans.append((start, cursor))
    return spans

"""Where the answers stand in a rendered conversation, from the chat template itself.

The template is rendered twice: with the messages, and with a mark in the place of each one. What stands between the
marks is the template's own text, so every message has a known place and nothing is searched for in text that a message
may hold too. A template that rewrites a message (other than trimming it) is found out and refused.
"""

import re
from collections.abc import Sequence
from typing import Any

from sglang_specbench.foreign_file import reading

_MARK = re.compile("\ue000(\\d+)\ue001")  # private-use characters: in no template and no message
_TRIMS = (str, str.strip, str.lstrip, str.rstrip, lambda text: text.lstrip("\n"))


class RewrittenError(ValueError):
    """The template renders a message otherwise than as its text."""


def answer_spans(messages: Sequence[dict[str, str]], tokenizer: Any) -> tuple[str, list[tuple[int, int]]]:
    """The rendered text, and (start, end) of each non-empty answer in it; thinking is off."""
    text = _render(messages, tokenizer)
    marked = [{**message, "content": f"\ue000{index}\ue001"} for index, message in enumerate(messages)]
    pieces = _MARK.split(_render(marked, tokenizer))  # template text, index, template text, index, ..., template text
    if sorted(map(int, pieces[1::2])) != list(range(len(messages))) or not text.startswith(pieces[0]):
        raise RewrittenError
    spans, cursor = [], len(pieces[0])
    for index, after in zip(map(int, pieces[1::2]), pieces[2::2], strict=True):
        content = _as_rendered(messages[index]["content"], after, text, cursor)
        if messages[index]["role"] == "assistant" and content:
            spans.append((cursor, cursor + len(content)))
        cursor += len(content) + len(after)
    if cursor != len(text):
        raise RewrittenError
    return text, spans


def _as_rendered(content: str, after: str, text: str, cursor: int) -> str:
    for trim in _TRIMS:
        if text.startswith(trim(content) + after, cursor):
            return trim(content)
    raise RewrittenError


def _render(messages: Sequence[dict[str, str]], tokenizer: Any) -> str:
    with reading("the target's chat template", "give the target one that takes these turns", "fails"):
        return str(tokenizer.apply_chat_template(list(messages), tokenize=False, enable_thinking=False))

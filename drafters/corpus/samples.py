"""Conversations to training samples: rendered as they are served, tokenised, loss on the target's own answers.

A recorded failure is no sample; the ``prompt_ids`` and ``output_ids`` of a single answer are taken as they are.
The loss mask covers each answer and the end-of-turn token that closes it. It leaves out everything the template adds
before the answer, an empty ``<think>`` preamble included, because at serving time that is part of the prompt.

Not here: the order of samples (`batches`), anchors (`anchors`), the corpus file (`conversation`), or where its
conversations come from (`nemotron`, `generate`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from drafters.corpus.conversation import Conversation, read_conversations
from sglang_specbench.errors import UserError


@dataclass(frozen=True)
class Sample:
    """One rendered conversation: ``ids_S`` int64 token ids, ``loss_S`` bool, true on supervised tokens."""

    id: str
    category: str
    ids_S: Tensor
    loss_S: Tensor


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

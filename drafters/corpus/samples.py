"""Conversations to training samples: rendered as they are served, tokenised, loss on the target's own answers.

A recorded failure is no sample; the ``prompt_ids`` and ``output_ids`` of a single answer are taken as they are.
The loss mask covers each answer and the end-of-turn token that closes it. It leaves out everything the template adds
before the answer, an empty ``<think>`` preamble included, because at serving time that is part of the prompt.

Not here: where answers stand in the text (`answer_spans`), the corpus file (`conversation`), where its conversations
come from (`nemotron`, `generate`), and what training makes of samples.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from drafters.corpus.answer_spans import RewrittenError, answer_spans
from drafters.corpus.conversation import Conversation, read_conversations
from sglang_specbench.errors import UserError


@dataclass(frozen=True)
class Sample:
    """One rendered conversation: ``ids_S`` int64 token ids, ``loss_S`` bool, true on supervised tokens."""

    id: str
    category: str
    ids_S: Tensor
    loss_S: Tensor
    cut: bool = False  # to the length of a sample


class NoSampleError(ValueError):
    """Why a conversation is dropped, in words that are counted."""


@dataclass(frozen=True)
class Corpus:
    """``counts``: conversations dropped or cut, by reason; those cut are among the samples."""

    samples: list[Sample]
    counts: dict[str, int]


def read_corpus(path: Path, tokenizer: Any, length: int) -> Corpus:
    """The corpus at ``path`` as samples of at most ``length`` tokens; `UserError` if nothing is left of it.

    `UserError` as well for an id twice, and for a template that closes an answer with no token of its own.
    """
    samples, counts = [], Counter[str]()
    for conversation in read_conversations(path, failures=counts):
        try:
            sample = render(conversation, tokenizer, length)
        except NoSampleError as reason:
            counts[f"dropped: {reason}"] += 1
            continue
        samples.append(sample)
        if conversation.cut:
            counts["cut: an answer reached the token limit"] += 1
        if sample.cut:
            counts[f"cut: to {length} tokens"] += 1
    if not samples:
        said = "; ".join(f"{reason} ({count})" for reason, count in counts.items())
        raise UserError(f"{path}: no conversation has an answer of two tokens: {said}", "regenerate the corpus first")
    return Corpus(samples, dict(counts))


def read_samples(path: Path, tokenizer: Any, length: int) -> list[Sample]:
    """The samples of `read_corpus`."""
    return read_corpus(path, tokenizer, length).samples


def render(conversation: Conversation, tokenizer: Any, length: int) -> Sample:
    """Template, tokenise, mask and cut to ``length`` tokens; thinking is off, as at serving time.

    Raises `NoSampleError` when no anchor is left (two consecutive supervised tokens).
    """
    ids, loss = _exact(conversation.exact) if conversation.exact else _tokenised(conversation, tokenizer)
    if not any(pair == (True, True) for pair in pairwise(loss)):
        raise NoSampleError("no answer of two tokens")
    ids_S, loss_S = torch.tensor(ids[:length]), torch.tensor(loss[:length])
    if not (loss_S[:-1] & loss_S[1:]).any():
        raise NoSampleError(f"no answer within the first {length} tokens")
    return Sample(conversation.id, conversation.category, ids_S, loss_S, cut=len(ids) > length)


def _exact(exact: tuple[list[int], list[int]]) -> tuple[list[int], list[bool]]:
    prompt, answer = exact
    return prompt + answer, [False] * len(prompt) + [True] * len(answer)


def _tokenised(conversation: Conversation, tokenizer: Any) -> tuple[list[int], list[bool]]:
    try:
        text, spans = answer_spans(conversation.messages, tokenizer)
    except RewrittenError:
        raise NoSampleError("the chat template rewrites a message") from None
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, places = encoded["input_ids"], encoded["offset_mapping"]
    loss = [False] * len(ids)
    for start, end in spans:
        if any(lo < start < hi or lo < end < hi for lo, hi in places):
            raise NoSampleError("an answer shares a token with the template")
        first = next(i for i, (lo, _) in enumerate(places) if lo >= start)
        last = _end_of_turn(ids, places, end, text, tokenizer)
        loss[first : last + 1] = [True] * (last + 1 - first)
    return ids, loss


def _end_of_turn(ids: list[int], places: list[tuple[int, int]], end: int, text: str, tokenizer: Any) -> int:
    """Index of the token that closes the answer ending at character ``end``: the next special one."""
    after = next((i for i, (lo, hi) in enumerate(places) if lo >= end and text[lo:hi].strip()), None)
    if after is None or ids[after] not in tokenizer.added_tokens_decoder:
        raise UserError(
            f"the chat template closes an answer with {text[end : end + 20]!r}, which begins with no special token",
            "give the target a chat template whose answers end in a special token",
        )
    return after

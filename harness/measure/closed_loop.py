"""The measured part: conversations driven through a server, exactly ``concurrency`` at a time, in a fixed order.

A worker takes the next conversation as soon as its last one ends; there is no think time. First turns are rendered
beforehand; a later turn is rendered with the live answer, between two requests. One clock (``time.perf_counter``)
times everything, from the moment the loop starts.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.prompts.chat_template import ids_hash, messages
from harness.prompts.prompt_set import Prompt
from harness.prompts.tokenized import Conversation
from harness.schema.failure import Failure
from harness.schema.request import Row
from harness.serve.client import Client, Sampling
from harness.serve.responses import Answer
from sglang_specbench.errors import UserError

Render = Callable[[list[dict[str, str]]], list[int]]
CLOCK_S = 1.0  # more than two clocks of one machine can differ over one request, unless one of them jumped


@dataclass(kw_only=True)
class ClosedLoop:
    """One pass over ``conversations``. ``rows`` fills as requests end and is whole after `run`."""

    client: Client
    sampling: Sampling
    render: Render
    name: str  # prefix of the request ids
    keep_output: bool
    on_done: Callable[[], None]  # called when a conversation ends
    rows: list[Row]

    async def run(self, conversations: Sequence[Conversation], concurrency: int) -> float:
        """Drive all of them; seconds from the first send to the last answer.

        Raises `Failure` at the first request that fails, after its row is in `rows`; the others are dropped.
        """
        self._origin = time.perf_counter()
        shared = iter(enumerate(conversations))
        try:
            await together([self._work(shared) for _ in range(concurrency)])
        finally:
            self.rows.sort(key=lambda row: (row.index, row.turn))
        return max(row.done_s for row in self.rows) - min(row.sent_s for row in self.rows)

    async def _work(self, shared: Iterator[tuple[int, Conversation]]) -> None:
        for index, conversation in shared:
            await self._talk(index, conversation)
            self.on_done()

    async def _talk(self, index: int, conversation: Conversation) -> None:
        prompt, answers = conversation.prompt, list[str]()
        ids, digest = conversation.first_ids, conversation.first_hash
        for turn in range(len(prompt.turns)):
            if turn:
                ids = self._rendered(_Ask(index, prompt, turn, "", 0, self._now()), answers)
                digest = ids_hash(ids)
            ask = _Ask(index, prompt, turn, digest, len(ids), self._now())
            answers.append(await self._request(ids, ask))

    def _rendered(self, ask: "_Ask", answers: Sequence[str]) -> Sequence[int]:
        """Token ids of a later turn; a template that cannot take the live answer fails the request."""
        try:
            return self.render(messages(ask.prompt, answers))
        except UserError as error:
            failure = Failure("invalid", str(error))
            self.rows.append(ask.failed(failure, self._now()))
            raise failure from None

    async def _request(self, ids: Sequence[int], ask: "_Ask") -> str:
        """One request and its row; the text of the answer."""
        try:
            answer = await self.client.generate(ids, self.sampling, f"{self.name}-{ask.index}-{ask.turn}")
        except Failure as failure:
            if failure.outcome != "server_died":
                self.rows.append(ask.failed(failure, self._now()))
            raise
        self.rows.append(ask.row(answer, self._now(), self.keep_output))
        return answer.text

    def _now(self) -> float:
        return time.perf_counter() - self._origin


async def together(work: Sequence[Coroutine[Any, Any, Any]]) -> None:
    """All of ``work`` at once; the first exception ends the others and is raised."""
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Ask:
    """What is known of a request when it is sent."""

    index: int
    prompt: Prompt
    turn: int
    prompt_hash: str
    prompt_tokens: int
    sent_s: float

    def row(self, answer: Answer, done_s: float, keep_output: bool) -> Row:
        wrong = self._wrong(answer, done_s)
        chunks = None if answer.chunk_s is None else tuple(self.sent_s + s for s in answer.chunk_s)
        first = None if answer.first_token_s is None else min(self.sent_s + answer.first_token_s, done_s)
        return Row(
            **self._common(),
            completion_tokens=answer.completion_tokens,
            verify_ct=answer.verify_ct,
            correct_drafts=answer.correct_drafts,
            histogram=answer.histogram,
            cap_histogram=answer.cap_histogram,
            finish_reason=answer.finish,
            retractions=answer.retractions,
            cached_tokens=answer.cached_tokens,
            first_token_s=chunks[0] if chunks else first,
            done_s=done_s,
            chunk_s=chunks,
            chunk_tokens=answer.chunk_tokens,
            output_hash=ids_hash(answer.output_ids),
            output_ids=answer.output_ids if keep_output else None,
            text=answer.text if keep_output else None,
            outcome="invalid" if wrong else "ok",
            reason=wrong,
        )

    def _wrong(self, answer: Answer, done_s: float) -> str:
        """Why the answer cannot be one to this request; "" if it can."""
        if answer.prompt_tokens != self.prompt_tokens:
            return f"sent {self.prompt_tokens} tokens, the server counted {answer.prompt_tokens}"
        if answer.completion_tokens != len(answer.output_ids):
            return f"{len(answer.output_ids)} token ids came back, the server counted {answer.completion_tokens}"
        took = done_s - self.sent_s
        if (answer.first_token_s or 0.0) > took + CLOCK_S:
            return f"first token after {answer.first_token_s:g} s by the server's clock, all of it after {took:.3g} s"
        return ""

    def failed(self, failure: Failure, done_s: float) -> Row:
        return Row(
            **self._common(),
            completion_tokens=0,
            done_s=done_s,
            output_hash="",
            outcome=failure.outcome,
            reason=failure.reason,
        )

    def _common(self) -> dict[str, Any]:
        return {
            "index": self.index,
            "prompt_id": self.prompt.id,
            "turn": self.turn,
            "category": self.prompt.category,
            "prompt_hash": self.prompt_hash,
            "prompt_tokens": self.prompt_tokens,
            "sent_s": self.sent_s,
        }

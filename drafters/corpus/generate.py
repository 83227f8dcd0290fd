"""Regenerate every answer of a corpus with the target, through a running SGLang server.

Greedy, thinking off, at most 4,096 new tokens a turn (the paper's section 4). Each finished conversation is one line of
the output, appended as it ends; a conversation the server failed on is a line with ``error``. A second call does only
what is missing or failed. Lines stand in the order of finishing; training keeps the order of the file it is given.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import aiohttp

from drafters.corpus.conversation import Conversation, read_rows
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import decoded, json_value
from sglang_specbench.growing_file import cut_torn_line

NEW_TOKENS = 4096
TRIES = 3  # a restarting server refuses connections for a while
PAUSE_S = 5.0
ANSWER_S = 3600.0  # of one answer, the wait for others included: a hung server must not hold the corpus for ever
ANSWER_BYTES = 64 << 20


def regenerate(
    conversations: Iterable[Conversation],
    output: Path,
    tokenizer: Any,
    *,
    server: str,
    concurrency: int,
    on_done: Callable[[dict[str, Any]], None],
) -> None:
    """Write the conversations that ``output`` lacks; ``on_done(row)`` is called for each.

    Rows of an earlier call that hold no answer are done again, and are not kept beside the new ones. Raises `UserError`
    before anything is written when ``server`` does not answer.
    """
    asyncio.run(_run(conversations, output, tokenizer, server.rstrip("/"), concurrency, on_done))


def answered(row: dict[str, Any], where: str = "") -> bool:
    """Whether ``row`` ends in an answer; `UserError` naming ``where`` if it is no conversation."""
    if "error" in row:
        return False
    messages = Conversation.from_row(row, where).messages
    return bool(messages) and messages[-1]["role"] == "assistant"


def _keep_answered(output: Path) -> set[str]:
    """Ids of the rows of ``output`` that hold an answer; the others, and the torn last line of a killed run, go."""
    if not output.is_file():
        return set()
    cut_torn_line(output)
    kept, rows = list[str](), 0
    part = output.with_name(f"{output.name}.part")
    with part.open("w", encoding="utf-8") as handle:
        for where, row in read_rows(output):
            rows += 1
            if answered(row, where):
                handle.write(json.dumps(row, ensure_ascii=False) + "\n")
                kept.append(str(row["id"]))
    part.replace(output) if len(kept) < rows else part.unlink()
    return set(kept)


async def _run(
    conversations: Iterable[Conversation],
    output: Path,
    tokenizer: Any,
    server: str,
    concurrency: int,
    on_done: Callable[[dict[str, Any]], None],
) -> None:
    timeout = aiohttp.ClientTimeout(total=ANSWER_S, sock_connect=10)
    async with aiohttp.ClientSession(server, timeout=timeout) as session:
        answerer = Answerer(session, tokenizer, await _room(session, server))
        done = _keep_answered(output)
        # workers draw from one iterator, so a streamed corpus is never held whole
        waiting = (c for c in conversations if c.id not in done)
        with output.open("a", encoding="utf-8") as handle:
            workers = (_work(answerer, waiting, handle, on_done) for _ in range(concurrency))
            await asyncio.gather(*workers)


async def _room(session: aiohttp.ClientSession, server: str) -> int:
    """Tokens that prompt and answer may have together (SGLang 0.5.23 refuses a request that could need more)."""
    try:
        async with session.get("/server_info") as reply:
            reply.raise_for_status()
            room = (await _object(reply, "/server_info")).get("max_req_input_len")
    except aiohttp.ClientConnectorError:
        raise UserError(
            f"--server {server}: nothing listens there", "leave it out, or: specbench serve TARGET"
        ) from None
    except (aiohttp.ClientError, TimeoutError, ValueError, UserError) as error:  # ValueError: a URL that is none
        raise UserError(f"--server {server}: no SGLang there ({error!r})", "start it with the target first") from None
    if type(room) is not int or room < 1:
        hint = "start it with the target first"
        raise UserError(f"--server {server}: no SGLang there: max_req_input_len is {room!r:.80}", hint)
    return int(room)


async def _work(
    answerer: "Answerer", waiting: Iterator[Conversation], handle: TextIO, on_done: Callable[[dict[str, Any]], None]
) -> None:
    for conversation in waiting:
        row: dict[str, Any] = {"id": conversation.id, "category": conversation.category}
        try:
            row |= await answerer.answer(conversation)
        except (aiohttp.ClientError, TimeoutError, NoRoomError, NothingAskedError, UserError) as error:
            row["error"] = str(error) or repr(error)
        handle.write(json.dumps(row, ensure_ascii=False) + "\n")
        handle.flush()
        on_done(row)


async def _object(reply: aiohttp.ClientResponse, where: str) -> dict[str, Any]:
    """The JSON object of an answer; `UserError` if it is none, or too large."""
    data = bytearray()
    async for part in reply.content.iter_chunked(1 << 16):
        data += part
        if len(data) > ANSWER_BYTES:
            raise UserError(f"{where}: an answer of more than {ANSWER_BYTES:,} bytes")
    value = json_value(decoded(bytes(data), where), where)
    if not isinstance(value, dict):
        raise UserError(f"{where} answered without an object: {value!r:.80}")
    return value


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    """``answer`` if its text, ids and end are of their types; `UserError` names the one that is not."""
    meta = answer.get("meta_info")
    finish = meta.get("finish_reason") if isinstance(meta, dict) else None
    ids = answer.get("output_ids")
    good = {
        "text": isinstance(answer.get("text"), str),
        "output_ids": isinstance(ids, list) and all(type(i) is int and 0 <= i < 1 << 31 for i in ids),
        "meta_info.finish_reason": isinstance(finish, dict) and finish.get("type") != "abort",
    }
    for key, fits in good.items():
        if not fits:
            raise UserError(f"/generate answered with another {key} than SGLang 0.5.23 gives")
    return answer


class NoRoomError(Exception):
    """The prompt leaves no token of the server's context for an answer."""


class NothingAskedError(Exception):
    """The conversation has no turn of a user."""


@dataclass(frozen=True)
class Answerer:
    """The target behind ``session``; prompt and answer have ``room`` tokens together."""

    session: aiohttp.ClientSession
    tokenizer: Any
    room: int

    async def answer(self, conversation: Conversation) -> dict[str, Any]:
        """``messages`` with every assistant turn answered anew, given the new ones before it.

        A conversation that ends in a user turn gets an answer to it. A single answer comes with its ``prompt_ids`` and
        ``output_ids``: tokenising the text again could differ. ``cut`` counts the answers that the token limit ended.
        """
        history: list[dict[str, str]] = []
        row: dict[str, Any] = {"messages": history}
        answers = cut = 0
        asked = conversation.messages
        if not any(message["role"] == "user" for message in asked):
            raise NothingAskedError("no turn of a user to answer")
        if asked[-1]["role"] != "assistant":
            asked = (*asked, {"role": "assistant", "content": ""})
        for message in asked:
            if message["role"] == "assistant":
                prompt = self.tokenizer.apply_chat_template(
                    history, add_generation_prompt=True, enable_thinking=False, return_dict=False
                )
                reply = await self._generate(prompt)
                message = {"role": "assistant", "content": reply["text"]}
                row |= {"prompt_ids": prompt, "output_ids": reply["output_ids"]}
                answers += 1
                cut += reply["meta_info"]["finish_reason"].get("type") == "length"
            history.append(message)
        if answers > 1:
            del row["prompt_ids"], row["output_ids"]
        return row | ({"cut": cut} if cut else {})

    async def _generate(self, prompt: list[int], tries: int = TRIES) -> dict[str, Any]:
        left = self.room - len(prompt)
        if left < 1:
            raise NoRoomError(f"a prompt of {len(prompt)} tokens fills the server's context")
        sampling = {"temperature": 0, "max_new_tokens": min(NEW_TOKENS, left)}
        try:
            async with self.session.post(
                "/generate", json={"input_ids": prompt, "sampling_params": sampling}
            ) as response:
                response.raise_for_status()
                return _checked(await _object(response, "/generate"))
        except aiohttp.ClientConnectionError:
            if tries == 1:
                raise
            await asyncio.sleep(PAUSE_S)
            return await self._generate(prompt, tries - 1)

"""Regenerate every answer of a corpus with the target, through a running SGLang server.

Greedy, thinking off, at most 4,096 new tokens a turn (the paper's section 4). Each finished conversation is one line of
the output, appended as it ends; a conversation the server failed on is a line with ``error``. A second call does only
what is missing or failed. The order of lines is the order of finishing: training sorts by id.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import aiohttp

from drafters.data import Conversation, read_rows
from sglang_specbench.errors import UserError

NEW_TOKENS = 4096
TRIES = 3  # a restarting server refuses connections for a while
PAUSE_S = 5.0


def regenerate(
    conversations: Iterable[Conversation],
    output: Path,
    tokenizer: Any,
    *,
    server: str,
    concurrency: int,
    on_done: Callable[[bool], None],
) -> None:
    """Write the conversations that ``output`` lacks; ``on_done(succeeded)`` is called for each.

    Raises `UserError` before anything is written when ``server`` does not answer.
    """
    _mend(output)
    done = {row["id"] for _, row in read_rows(output) if "error" not in row} if output.is_file() else set()
    missing = (c for c in conversations if c.id not in done)
    asyncio.run(_run(missing, output, tokenizer, server.rstrip("/"), concurrency, on_done))


def _mend(output: Path) -> None:
    """Cut off the half-written last line of a killed run."""
    if output.is_file():
        whole = output.read_bytes()
        if not whole.endswith(b"\n"):
            output.write_bytes(whole[: whole.rfind(b"\n") + 1])


async def _run(
    conversations: Iterable[Conversation],
    output: Path,
    tokenizer: Any,
    server: str,
    concurrency: int,
    on_done: Callable[[bool], None],
) -> None:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
    async with aiohttp.ClientSession(server, timeout=timeout) as session:
        await _check(session, server)
        waiting = iter(conversations)  # workers draw from one iterator, so a streamed corpus is never held whole
        with output.open("a", encoding="utf-8") as handle:
            workers = (_work(session, waiting, handle, tokenizer, on_done) for _ in range(concurrency))
            await asyncio.gather(*workers)


async def _check(session: aiohttp.ClientSession, server: str) -> None:
    try:
        async with session.get("/health") as reply:
            reply.raise_for_status()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise UserError(f"--server {server}: no answer ({error})", "start SGLang with the target first") from None


async def _work(
    session: aiohttp.ClientSession,
    waiting: Iterator[Conversation],
    handle: TextIO,
    tokenizer: Any,
    on_done: Callable[[bool], None],
) -> None:
    for conversation in waiting:
        row: dict[str, Any] = {"id": conversation.id, "category": conversation.category}
        try:
            row["messages"] = await _answer(session, conversation, tokenizer)
        except (aiohttp.ClientError, TimeoutError) as error:
            row["error"] = repr(error)
        handle.write(json.dumps(row, ensure_ascii=False) + "\n")
        handle.flush()
        on_done("error" not in row)


async def _answer(session: aiohttp.ClientSession, conversation: Conversation, tokenizer: Any) -> list[dict[str, str]]:
    """The messages of ``conversation`` with every assistant turn answered anew, given the new ones before it."""
    history: list[dict[str, str]] = []
    for message in conversation.messages:
        if message["role"] == "assistant":
            prompt = tokenizer.apply_chat_template(
                history, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
            message = {"role": "assistant", "content": await _generate(session, prompt)}
        history.append(message)
    return history


async def _generate(session: aiohttp.ClientSession, prompt: str, tries: int = TRIES) -> str:
    request = {"text": prompt, "sampling_params": {"temperature": 0, "max_new_tokens": NEW_TOKENS}}
    try:
        async with session.post("/generate", json=request) as reply:
            reply.raise_for_status()
            return str((await reply.json())["text"])
    except aiohttp.ClientConnectionError:
        if tries == 1:
            raise
        await asyncio.sleep(PAUSE_S)
        return await _generate(session, prompt, tries - 1)

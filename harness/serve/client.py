"""A client of one SGLang server: a handful of HTTP calls, each with its way of failing.

Speaks ``/generate`` with token ids of our own rendering and every sampling parameter spelt out, because the OpenAI
routes take defaults from the model's generation_config.json. Knows nothing of cells or order.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Any, Self

import aiohttp

from harness.schema.cell import Cell
from harness.schema.failure import Failure
from harness.serve.counters import Counters
from harness.serve.responses import Answer, ServerInfo
from harness.serve.stream import ANSWER_BYTES, Chunks
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import json_value

INFO_TIMEOUT_S = 60.0
READY_TIMEOUT_S = 5.0
FLUSH_TIMEOUT_S = 30.0  # how long the server itself waits to be idle; it answers 400 if it is not


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """``sampling_params`` of SGLang, complete: an unset one would be the server's choice."""

    temperature: float
    max_new_tokens: int
    ignore_eos: bool
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0

    @classmethod
    def of(cls, cell: Cell) -> Self:
        """What ``cell`` asks for."""
        names = ("temperature", "max_new_tokens", "ignore_eos", "top_p", "top_k")
        return cls(**{name: getattr(cell, name) for name in names})


class Client:
    """Use as ``async with``. One connection a request in flight, kept open between requests.

    With ``stream`` answers come in chunks, and each says when.
    """

    def __init__(self, url: str, timeout_s: float, stream: bool = False) -> None:
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s
        self.stream = stream

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            # the server closes a connection that was idle for 5 s (uvicorn's default): never reuse one that is near it
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=2),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def generate(self, ids: Sequence[int], sampling: Sampling, rid: str) -> Answer:
        """The finished answer. Raises `Failure`: timeout, aborted, invalid, or server_died (connection lost)."""
        body = {"input_ids": list(ids), "sampling_params": asdict(sampling), "rid": rid, "stream": self.stream}
        chunks = Chunks(sent=time.perf_counter()) if self.stream else None
        try:
            async with asyncio.timeout(self.timeout_s):
                status, text = await self._call("POST", "/generate", body, chunks)
        except TimeoutError:
            raise Failure("timeout", f"no answer within {self.timeout_s:g} s") from None
        if status != 200:
            raise Failure("invalid" if status < 500 else "aborted", f"HTTP {status}: {_message(text)}")
        answer = Answer.parse(_whole(decoded(text, "/generate")))
        if chunks:
            answer = replace(answer, chunk_s=tuple(chunks.seconds), chunk_tokens=tuple(chunks.tokens))
        if answer.finish == "abort":
            raise Failure("aborted", answer.finish_message or "the server aborted the request")
        return answer

    async def info(self) -> ServerInfo:
        """``/server_info``, with the scheduler's live state. Raises `Failure`."""
        try:
            async with asyncio.timeout(INFO_TIMEOUT_S):
                status, text = await self._call("GET", "/server_info")
        except TimeoutError:
            raise Failure("server_died", f"/server_info did not answer within {INFO_TIMEOUT_S:g} s") from None
        if status != 200:
            raise Failure("invalid", f"/server_info: HTTP {status}")
        return ServerInfo.parse(decoded(text, "/server_info"))

    async def flush_cache(self) -> None:
        """Empty the prefix cache and reset the counters; waits until the server is idle. Raises `Failure`."""
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT_S + INFO_TIMEOUT_S):
                status, text = await self._call("POST", f"/flush_cache?timeout={FLUSH_TIMEOUT_S:g}")
        except TimeoutError:
            raise Failure("server_died", "/flush_cache did not answer") from None
        if status != 200:
            raise Failure("invalid", f"/flush_cache: HTTP {status}: {_message(text)}")

    async def freeze_gc(self) -> None:
        """Spare the server's processes full garbage collections over what exists by now. Raises `Failure`."""
        try:
            async with asyncio.timeout(INFO_TIMEOUT_S):
                status, text = await self._call("POST", "/freeze_gc")
        except TimeoutError:
            raise Failure("server_died", f"/freeze_gc did not answer within {INFO_TIMEOUT_S:g} s") from None
        if status != 200:
            raise Failure("invalid", f"/freeze_gc: HTTP {status}: {_message(text)}")

    async def counters(self) -> Counters | None:
        """The server's own counters; None where it does not publish them."""
        try:
            async with asyncio.timeout(INFO_TIMEOUT_S):
                status, text = await self._call("GET", "/metrics/")
        except TimeoutError:
            return None
        return Counters.parse(text) if status == 200 else None

    async def _call(self, method: str, path: str, body: Any = None, chunks: Chunks | None = None) -> tuple[int, str]:
        """Status and text; of a stream, which fills ``chunks``, the last event's."""
        try:
            async with self._session.request(method, self.url + path, json=body, allow_redirects=False) as answer:
                if chunks is None or answer.status != 200:
                    return answer.status, await _text(answer, path)
                await chunks.read(answer.content.iter_any())
                return answer.status, chunks.last.decode(errors="backslashreplace")
        except TimeoutError:  # an OSError, too; it is the caller's
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a header that is none
            raise Failure("server_died", f"{path}: {str(error)[:300] or type(error).__name__}") from None


async def _text(answer: aiohttp.ClientResponse, path: str) -> str:
    """The body as UTF-8, whatever the server calls it; bytes that are not stand as their numbers."""
    data = bytearray()
    async for part in answer.content.iter_chunked(1 << 16):
        data += part
        if len(data) > ANSWER_BYTES:
            raise Failure("invalid", f"{path}: an answer of more than {ANSWER_BYTES:,} bytes")
    return data.decode(errors="backslashreplace")


def server_info(url: str) -> ServerInfo:
    """`Client.info`, for callers without a loop."""

    async def ask() -> ServerInfo:
        async with Client(url, timeout_s=INFO_TIMEOUT_S) as client:
            return await client.info()

    return asyncio.run(ask())


def decoded(text: str, where: str) -> Any:
    """The JSON value of an answer; `Failure` (invalid) if it is not JSON that can be used."""
    try:
        return json_value(text, where)
    except UserError as error:
        raise Failure("invalid", f"{error.message}: {text[:80]!r}") from None


def _whole(body: Any) -> Any:
    """``body``, unless it is the error that ends a stream: `Failure` (aborted)."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        raise Failure("aborted", f"the stream ended in an error: {str(body['error'].get('message'))[:200]}")
    return body


def says_ready(url: str) -> bool:
    """Does ``/ready`` answer 200, and at once."""

    async def ask() -> int:
        async with Client(url, timeout_s=READY_TIMEOUT_S) as client, asyncio.timeout(READY_TIMEOUT_S):
            return (await client._call("GET", "/ready"))[0]

    try:
        return asyncio.run(ask()) == 200
    except (Failure, TimeoutError):
        return False


def _message(text: str) -> str:
    """The error message in an SGLang error body, or its first line."""
    try:
        error = json_value(text, "")["error"]
        return str(error["message"] if isinstance(error, dict) else error)[:200]
    except (UserError, KeyError, TypeError):
        return text.strip().splitlines()[0][:200] if text.strip() else "no text"

"""A streamed answer: SGLang's events, each with the whole answer so far, and when each of them arrived.

An event is ``data: JSON`` and an empty line (SGLang 0.5.23, ``entrypoints/http_server.py``); the last is ``[DONE]``.
One event carries what one verify block committed, so a chunk is what a reader sees appear at once. Only the count of
tokens is looked for while answers come in, and the last event alone is decoded: decoding each would delay the clock.
"""

import re
import time
from collections.abc import AsyncIterable
from dataclasses import dataclass, field

from harness.schema.failure import Failure

ANSWER_BYTES = 256 << 20  # most of one answer, and of one event: a million tokens, their ids and text
_COUNT = re.compile(rb'"completion_tokens":\s*(\d{1,9})\b')  # inside a text its quotes would be escaped
_DONE = b"[DONE]"


@dataclass(kw_only=True)
class Chunks:
    """Arrivals of one answer: ``seconds`` since ``sent`` (of `time.perf_counter`), and ``tokens`` by then."""

    sent: float
    seconds: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    last: bytes = b""  # the last event's JSON

    async def read(self, parts: AsyncIterable[bytes]) -> None:
        """Take in ``parts`` until the end marker; `Failure` (aborted) without one, (invalid) if it is no stream."""
        held = bytearray()
        async for part in parts:
            now = time.perf_counter() - self.sent
            held += part
            while (end := held.find(b"\n\n")) >= 0:
                event = bytes(held[:end])
                del held[: end + 2]
                if self._take(event, now):
                    return
            if len(held) > ANSWER_BYTES:
                raise Failure("invalid", f"/generate: an event of more than {ANSWER_BYTES:,} bytes")
        raise Failure("aborted", "/generate: the stream ended before its end marker")

    def _take(self, event: bytes, now: float) -> bool:
        """Whether ``event`` ends the stream."""
        if not event.startswith(b"data:"):
            raise Failure("invalid", f"/generate: no event of a stream: {event[:80].decode(errors='replace')!r}")
        data = event[5:].strip()
        if data == _DONE:
            return True
        self.last = data
        found = _COUNT.search(data)
        count = int(found[1]) if found else 0
        if count > (self.tokens[-1] if self.tokens else 0):
            self.seconds.append(now)
            self.tokens.append(count)
        return False

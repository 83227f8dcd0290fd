"""How much of a measurement is the client: requests per second against a server that answers at once.

The stand-in is a bare asyncio protocol in a process of its own; the client is the closed loop that measures cells, at
concurrency 32, with prompts and answers of 200 tokens. Wanted: 1,000 requests/s on one core, and memory that grows by
a row, not by an answer.
"""

import asyncio
import json
import multiprocessing
import resource
import time
from multiprocessing.connection import Connection
from typing import Any

from harness.measure.closed_loop import ClosedLoop, Conversation
from harness.prompts.chat_template import ids_hash
from harness.prompts.prompt_set import Prompt
from harness.serve.client import Client, Sampling

REQUESTS, CONCURRENCY, TOKENS = 5000, 32, 200


class AtOnce(asyncio.Protocol):
    """Answers every request with the same finished generation."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            self.transport.write(ANSWER)


def answer() -> bytes:
    meta = {
        "finish_reason": {"type": "length", "length": TOKENS},
        "prompt_tokens": TOKENS,
        "completion_tokens": TOKENS,
        "cached_tokens": 0,
        "num_retractions": 0,
        "spec_verify_ct": 50,
        "spec_num_correct_drafts": 149,
        "spec_correct_drafts_histogram": [0, 1, 0, 48, 1],
    }
    body = json.dumps({"text": "word " * TOKENS, "output_ids": list(range(TOKENS)), "meta_info": meta}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


ANSWER = answer()


def serve(port: Connection) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(AtOnce, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def drive(url: str, count: int) -> tuple[float, float]:
    ids = tuple(range(TOKENS))
    talk = Conversation(prompt=Prompt(id="p", turns=("x",)), first_ids=ids, first_hash=ids_hash(ids))
    async with Client(url, timeout_s=60) as client:
        loop = ClosedLoop(
            client=client,
            sampling=Sampling(temperature=0.0, max_new_tokens=TOKENS, ignore_eos=False),
            render=lambda _: [],
            name="bench",
            keep_output=False,
            on_done=lambda: None,
            rows=[],
        )
        cpu = time.process_time()
        wall = await loop.run([talk] * count, CONCURRENCY)
        return wall, time.process_time() - cpu


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{mine.recv()}"
    asyncio.run(drive(url, 500))
    before = peak_mib()
    wall, cpu = asyncio.run(drive(url, REQUESTS))
    grown = (peak_mib() - before) * 1024 / REQUESTS
    print(f"client_overhead: {REQUESTS / wall:,.0f} requests/s at concurrency {CONCURRENCY} by the wall")
    print(f"client_overhead: {1e6 * cpu / REQUESTS:.0f} us of one core a request, so {REQUESTS / cpu:,.0f} requests/s")
    print(f"client_overhead: {grown:.2f} KiB of memory a row")
    server.terminate()
    server.join()


if __name__ == "__main__":
    main()

"""Regeneration against a stand-in server: turn by turn, resumable, and honest about failures."""

import asyncio
import json
import threading

import pytest
from aiohttp import web

pytest.importorskip("torch")  # drafters.data holds tensors

from drafters.data import Conversation
from drafters.generate import regenerate
from sglang_specbench.errors import UserError


class Template:
    def apply_chat_template(self, messages, **options):
        assert options == {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        return "|".join(m["content"] for m in messages)


@pytest.fixture
def server():
    """URL of a server that answers with its prompt in capitals and refuses prompts that hold "bad"."""
    seen = []

    async def generate(request):
        body = await request.json()
        seen.append(body)
        return web.json_response({"text": body["text"].upper()}, status=400 if "bad" in body["text"] else 200)

    async def health(_request):
        return web.Response()

    async def serve(ready):
        app = web.Application()
        app.add_routes([web.get("/health", health), web.post("/generate", generate)])
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        found["url"] = f"http://127.0.0.1:{runner.addresses[0][1]}"
        found["stop"] = asyncio.Event()
        found["loop"] = asyncio.get_running_loop()
        ready.set()
        await found["stop"].wait()
        await runner.cleanup()

    found, ready = {}, threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(serve(ready)))
    thread.start()
    assert ready.wait(10)
    yield found["url"], seen
    found["loop"].call_soon_threadsafe(found["stop"].set)
    thread.join(10)


def talk(name, *contents):
    roles = ("user", "assistant")
    return Conversation(name, "c", tuple({"role": roles[i % 2], "content": t} for i, t in enumerate(contents)))


def run(url, output, *talks):
    done = []
    regenerate(talks, output, Template(), server=url, concurrency=4, on_done=done.append)
    return done


def rows(output):
    return {row["id"]: row for row in map(json.loads, output.read_text().splitlines())}


def test_each_answer_is_replaced_given_the_new_ones_before_it(server, tmp_path):
    url, seen = server
    run(url, tmp_path / "o.jsonl", talk("a", "hi", "old", "more", "older"))
    assert [m["content"] for m in rows(tmp_path / "o.jsonl")["a"]["messages"]] == ["hi", "HI", "more", "HI|HI|MORE"]
    assert {json.dumps(s["sampling_params"], sort_keys=True) for s in seen} == {
        '{"max_new_tokens": 4096, "temperature": 0}'
    }


def test_a_second_call_does_only_what_is_missing_failed_or_half_written(server, tmp_path):
    url, seen = server
    output = tmp_path / "o.jsonl"
    run(url, output, talk("a", "hi", "x"), talk("b", "yo", "x"))
    with output.open("a") as handle:
        handle.write('{"id": "c", "error": "timeout"}\n{"id": "d", "mess')
    before = len(seen)
    run(url, output, *(talk(name, name, "x") for name in "abcd"))
    assert [s["text"] for s in seen[before:]] == ["c", "d"]
    assert all("error" not in row for row in rows(output).values())


def test_a_refused_conversation_is_a_row_with_its_error(server, tmp_path):
    url, _ = server
    assert sorted(run(url, tmp_path / "o.jsonl", talk("a", "bad", "x"), talk("b", "ok", "x"))) == [False, True]
    assert "400" in rows(tmp_path / "o.jsonl")["a"]["error"]
    assert "messages" in rows(tmp_path / "o.jsonl")["b"]


def test_without_a_server_nothing_is_written(tmp_path):
    with pytest.raises(UserError, match="--server"):
        run("http://127.0.0.1:9", tmp_path / "o.jsonl", talk("a", "hi", "x"))
    assert not (tmp_path / "o.jsonl").exists()

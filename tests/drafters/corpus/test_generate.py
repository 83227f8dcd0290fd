"""Regeneration against a stand-in server: turn by turn, resumable, and honest about failures."""

import asyncio
import json
import subprocess
import sys
import threading

import pytest
from aiohttp import web
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from drafters.corpus.conversation import Conversation, Line, read_conversations
from drafters.corpus.generate import regenerate
from sglang_specbench.errors import UserError

ROOM = 6000  # tokens of prompt and answer


class Template:
    def apply_chat_template(self, messages, **options):
        assert options == {"add_generation_prompt": True, "enable_thinking": False, "return_dict": False}
        return list("|".join(m["content"] for m in messages).encode())  # a token is a byte


@pytest.fixture
def server():
    """URL of a server that answers with its prompt in capitals and refuses prompts that hold "bad"."""
    seen = []

    async def generate(request):
        body = await request.json()
        seen.append(body)
        answer = bytes(body["input_ids"]).decode().upper()
        end = "length" if "LONG" in answer else "stop"
        return web.json_response(
            {
                "text": answer,
                "output_ids": list(answer.encode()),
                "meta_info": {"finish_reason": {"type": end}},
            },
            status=400 if "BAD" in answer else 200,
        )

    async def server_info(_request):
        return web.json_response({"max_req_input_len": ROOM})

    async def serve(ready):
        app = web.Application()
        app.add_routes([web.get("/server_info", server_info), web.post("/generate", generate)])
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
    assert [s["sampling_params"]["max_new_tokens"] for s in seen] == [4096, 4096]
    assert {s["sampling_params"]["temperature"] for s in seen} == {0}
    assert "output_ids" not in rows(tmp_path / "o.jsonl")["a"]


def test_a_single_answer_keeps_its_tokens(server, tmp_path):
    run(server[0], tmp_path / "o.jsonl", talk("a", "hi", "old"))
    row = rows(tmp_path / "o.jsonl")["a"]
    assert set(row) <= set(Line.__annotations__)  # which docs/corpus.md is made from
    assert (bytes(row["prompt_ids"]), bytes(row["output_ids"])) == (b"hi", b"HI")


def test_an_answer_gets_the_room_that_its_prompt_leaves(server, tmp_path):
    """SGLang refuses a request whose prompt and allowed answer exceed its context."""
    url, seen = server
    run(url, tmp_path / "o.jsonl", talk("a", "x" * (ROOM - 7), "old"), talk("b", "x" * ROOM, "old"))
    assert [s["sampling_params"]["max_new_tokens"] for s in seen] == [7]
    assert "fills the server's context" in rows(tmp_path / "o.jsonl")["b"]["error"]


def test_a_second_call_does_only_what_is_missing_failed_or_half_written(server, tmp_path):
    url, seen = server
    output = tmp_path / "o.jsonl"
    run(url, output, talk("a", "hi", "x"), talk("b", "yo", "x"))
    with output.open("a") as handle:
        handle.write('{"id": "c", "error": "timeout"}\n{"id": "d", "mess')
    before = len(seen)
    run(url, output, *(talk(name, name, "x") for name in "abcd"))
    assert [bytes(s["input_ids"]) for s in seen[before:]] == [b"c", b"d"]
    assert all("error" not in row for row in rows(output).values())


def test_a_refused_conversation_is_a_row_with_its_error(server, tmp_path):
    url, _ = server
    done = run(url, tmp_path / "o.jsonl", talk("a", "bad", "x"), talk("b", "ok", "x"))
    assert sorted("error" in row for row in done) == [False, True]
    assert "400" in rows(tmp_path / "o.jsonl")["a"]["error"]
    assert "messages" in rows(tmp_path / "o.jsonl")["b"]


def test_a_talk_that_ends_in_a_question_is_answered_and_an_older_row_without_an_answer_is_done_again(server, tmp_path):
    output = tmp_path / "o.jsonl"
    output.write_text('{"id": "a", "messages": [{"role": "user", "content": "hi"}]}\n')
    run(server[0], output, talk("a", "hi"), talk("b", "hi", "old", "more"))
    assert [m["content"] for m in rows(output)["a"]["messages"]] == ["hi", "HI"]
    assert bytes(rows(output)["a"]["output_ids"]) == b"HI"
    assert [m["content"] for m in rows(output)["b"]["messages"]] == ["hi", "HI", "more", "HI|HI|MORE"]


def test_a_row_without_an_answer_is_not_kept_beside_the_new_one(server, tmp_path):
    """Training refuses a file with one id twice; bad rows would make it of every rerun."""
    output = tmp_path / "o.jsonl"
    unanswered = '{"id": "a", "messages": [{"role": "user", "content": "hi"}]}\n'
    output.write_text(unanswered + '{"id": "b", "error": "timeout"}\n{"id": "a", "error": "again"}\n')
    run(server[0], output, talk("a", "hi"), talk("b", "yo"))
    assert [c.id for c in read_conversations(output)] == ["a", "b"]
    assert len(output.read_text().splitlines()) == 2


def test_a_talk_without_a_question_is_a_failure_and_not_an_answer(server, tmp_path):
    done = run(server[0], tmp_path / "o.jsonl", Conversation("a", "c", ()), talk("b", "hi"))
    assert {row["id"]: row.get("error") for row in done} == {"a": "no turn of a user to answer", "b": None}


def test_an_answer_that_the_token_limit_ended_is_marked(server, tmp_path):
    done = run(server[0], tmp_path / "o.jsonl", talk("a", "long", "x"), talk("b", "short", "x"))
    assert {row["id"]: row.get("cut") for row in done} == {"a": 1, "b": None}


def test_an_output_row_without_an_id_is_named(server, tmp_path):
    (tmp_path / "o.jsonl").write_text('{"messages": []}\n')
    with pytest.raises(UserError, match=r"o.jsonl:1: id: expected text, got None"):
        run(server[0], tmp_path / "o.jsonl", talk("a", "hi"))


def test_without_a_server_nothing_is_written(tmp_path):
    with pytest.raises(UserError, match="--server"):
        run("http://127.0.0.1:9", tmp_path / "o.jsonl", talk("a", "hi", "x"))
    assert not (tmp_path / "o.jsonl").exists()


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from sglang_specbench.cli import main; main()"


def write_tokenizer(folder):
    """A token is a character, as in `Template`."""
    words = Tokenizer(models.WordLevel({chr(i): i for i in range(128)}, unk_token="\0"))
    words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="\0")
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    tokenizer.save_pretrained(folder)


def test_the_command_needs_no_torch_and_prints_nothing_of_it(server, tmp_path):
    write_tokenizer(tmp_path / "target")
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "old"}]
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": "a", "messages": messages}))
    options = [f"--target={tmp_path / 'target'}", f"--server={server[0]}", f"--prompts={tmp_path / 'p.jsonl'}"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "generate", tmp_path / "new" / "o.jsonl", *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 answered (0 cut at the token limit), 0 failed" in done.stdout
    assert "PyTorch" not in done.stdout
    assert rows(tmp_path / "new" / "o.jsonl")["a"]["messages"][1]["content"] == "HI"

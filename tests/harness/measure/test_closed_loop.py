"""The closed loop and the warm-up against a client that only remembers."""

import asyncio
import itertools

import pytest

from harness.measure.closed_loop import ClosedLoop
from harness.measure.warmup import warm_up
from harness.prompts.prompt_set import Prompt
from harness.prompts.tokenized import Conversation
from harness.schema.failure import Failure
from harness.serve.client import Sampling
from harness.serve.responses import Answer

SAMPLING = Sampling(temperature=0.0, max_new_tokens=100, ignore_eos=False)


class Remembering:
    """Answers after ``seconds[i % n]``; ``fails_at`` is the request that fails."""

    def __init__(self, seconds=(0.001,), fails_at=None):
        self.seconds, self.fails_at = seconds, fails_at
        self.in_flight, self.most, self.asked, self.dropped = 0, 0, [], 0

    async def generate(self, ids, sampling, rid):
        self.asked.append((tuple(ids), sampling, rid))
        n = len(self.asked)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await asyncio.sleep(self.seconds[n % len(self.seconds)])
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        finally:
            self.in_flight -= 1
        if n == self.fails_at:
            raise Failure("aborted", "enough")
        return Answer(
            text=f"answer {n}", output_ids=(1, 2), prompt_tokens=len(ids), completion_tokens=2, cached_tokens=0,
            retractions=0, finish="stop", finish_message="", first_token_s=0.0, verify_ct=None, correct_drafts=None,
            histogram=None, cap_histogram=None,
        )  # fmt: skip


def talks(count, turns=1):
    return [
        Conversation(prompt=Prompt(id=f"p{i}", turns=("hi",) * turns), first_ids=(i,) * (i + 1), first_hash=str(i))
        for i in range(count)
    ]


def drive(client, conversations, concurrency, **changes):
    fields = {"render": lambda talk: [len(talk)], "keep_output": False, "on_done": lambda: None, "rows": []}
    loop = ClosedLoop(client=client, sampling=SAMPLING, name="cell", **{**fields, **changes})
    return loop, asyncio.run(loop.run(conversations, concurrency))


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_exactly_c_are_in_flight_and_the_order_is_fixed(concurrency):
    client = Remembering(seconds=(0.001, 0.004, 0.002))
    loop, wall = drive(client, talks(20), concurrency)
    assert client.most == concurrency
    assert [ids[0] for ids, _, _ in client.asked] == list(range(20))  # taken in order, however they end
    assert [row.index for row in loop.rows] == list(range(20))
    assert wall == max(r.done_s for r in loop.rows) - min(r.sent_s for r in loop.rows)


def test_turns_of_a_conversation_are_one_after_another():
    said = []
    client = Remembering()
    loop, _ = drive(client, talks(2, turns=3), 2, render=lambda talk: said.append(talk) or [len(talk)])
    for index in range(2):
        rows = [r for r in loop.rows if r.index == index]
        assert [r.turn for r in rows] == [0, 1, 2]
        assert all(a.done_s <= b.sent_s for a, b in itertools.pairwise(rows))
    assert sorted(len(talk) for talk in said) == [3, 3, 5, 5]
    assert all(m["content"].startswith("answer ") for talk in said for m in talk if m["role"] == "assistant")


def test_the_first_failure_is_a_row_and_drops_the_others():
    client = Remembering(seconds=(5.0, 5.0, 0.01), fails_at=2)
    loop = ClosedLoop(
        client=client, sampling=SAMPLING, render=list, name="cell", keep_output=False, on_done=lambda: None, rows=[]
    )
    with pytest.raises(Failure, match="enough"):
        asyncio.run(loop.run(talks(20), 4))
    assert [(r.outcome, r.reason) for r in loop.rows] == [("aborted", "enough")]
    assert client.dropped == 3
    assert client.in_flight == 0


def test_a_prompt_that_the_server_counts_otherwise_is_no_ok_row():
    class Wrong(Remembering):
        async def generate(self, ids, sampling, rid):
            return await super().generate((*ids, 0), sampling, rid)

    loop, _ = drive(Wrong(), talks(1), 1)
    assert loop.rows[0].outcome == "invalid"
    assert loop.rows[0].reason == "sent 1 tokens, the server counted 2"


def test_warm_up_passes_every_batch_size_and_never_sends_a_measured_prompt():
    client = Remembering()
    conversations = [
        Conversation(prompt=Prompt(id="p", turns=("x",)), first_ids=tuple(range(n)), first_hash="h") for n in (3, 9, 5)
    ]
    said = asyncio.run(warm_up(client, conversations, SAMPLING, 4))
    lengths = [sampling.max_new_tokens for _, sampling, _ in client.asked]
    assert sorted(lengths) == [16, 16, 32, 32, 48, 48, 64, 64]  # staggered: batches of 4, 3, 2 and 1
    assert client.most == 4
    assert all(sampling.ignore_eos for _, sampling, _ in client.asked)
    assert not {ids for ids, _, _ in client.asked} & {c.first_ids for c in conversations}
    assert max(len(ids) for ids, _, _ in client.asked) == 9
    assert said["requests"] == 8
    assert said["tokens"] == 320

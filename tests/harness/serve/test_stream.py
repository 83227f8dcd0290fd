"""A streamed answer: however the bytes are cut, the counts, their times and the last event come out."""

import asyncio
import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.schema.failure import Failure
from harness.serve.stream import Chunks


def event(tokens, text=""):
    return f"data: {json.dumps({'text': text, 'meta_info': {'completion_tokens': tokens}})}\n\n".encode()


def read(*parts, pause=0.0):
    async def coming():
        for part in parts:
            yield part
            if pause:
                await asyncio.sleep(pause)

    chunks = Chunks(sent=time.perf_counter())
    asyncio.run(chunks.read(coming()))
    return chunks


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.lists(st.integers(0, 2000), max_size=20))
def test_events_come_out_wherever_the_bytes_are_cut(gains, cuts):
    totals = [sum(gains[: i + 1]) for i in range(len(gains))]
    whole = b"".join(event(n, text='say "completion_tokens": 99 \n\n') for n in totals) + b"data: [DONE]\n\n"
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    chunks = read(*(whole[a:b] for a, b in itertools.pairwise(edges)))
    assert chunks.tokens == totals
    assert chunks.seconds == sorted(chunks.seconds)
    assert json.loads(chunks.last)["meta_info"]["completion_tokens"] == totals[-1]


def test_a_chunk_has_the_time_at_which_it_came():
    chunks = read(event(1), event(5), event(5), event(6), b"data: [DONE]\n\n", pause=0.02)
    assert chunks.tokens == [1, 5, 6]  # the third brought nothing new
    gaps = [b - a for a, b in itertools.pairwise(chunks.seconds)]
    assert gaps[0] == pytest.approx(0.02, abs=0.015)
    assert gaps[1] == pytest.approx(0.04, abs=0.03)


@pytest.mark.parametrize(
    ("parts", "outcome", "reason"),
    [
        ([event(1)], "aborted", "ended before its end marker"),
        ([], "aborted", "ended before its end marker"),
        ([b"<html>\n\n"], "invalid", "no event of a stream: '<html>'"),
        ([b"\xff\xfe\n\n"], "invalid", "no event of a stream"),
    ],
)
def test_what_is_no_whole_stream_is_a_failure(parts, outcome, reason):
    with pytest.raises(Failure, match=reason) as caught:
        read(*parts)
    assert caught.value.outcome == outcome

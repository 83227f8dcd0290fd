"""Throughput, steady state and block times against hand-made clocks."""

import numpy as np
import pandas as pd
import pytest

from harness.stats import speed


def totals(**changes):
    base = {"completion": 90.0, "requests": 10.0, "blocks": 20.0, "counted_decode": 8.0, "decode": 8.0}
    return {**base, **changes}


def test_each_speed_is_its_formula():
    found = speed.speeds(totals(), 12.0, concurrency=1)
    assert found["throughput"] == pytest.approx(90 / 12)
    assert found["block_ms"] == pytest.approx(600)
    assert found["decode_block_ms"] == pytest.approx(400)
    assert found["decode_token_ms"] == pytest.approx(100)


def test_block_time_is_one_streams_at_any_concurrency():
    """Four streams in 3 s do the 20 blocks of one stream in 12 s."""
    assert speed.speeds(totals(), 3.0, concurrency=4)["block_ms"] == pytest.approx(600)


def test_nothing_to_divide_by_is_nan_without_a_warning():
    found = speed.speeds(totals(blocks=0.0, completion=10.0), 12.0, concurrency=1)
    assert np.isnan(found["block_ms"])
    assert np.isnan(found["decode_token_ms"])


def frame(times, tokens=10, **columns):
    rows = [{"sent_s": s, "first_token_s": f, "done_s": d} for s, f, d in times]
    base = {"cell": "a", "prompt_id": [str(i) for i in range(len(times))], "completion_tokens": tokens, "outcome": "ok"}
    return pd.DataFrame(rows).assign(**{**base, **columns})


def test_steady_state_leaves_ramp_and_tail_out():
    """Two streams at 1 token/s each; the second starts at 4 and the first is alone from 10 to 20 again."""
    rows = frame([(0, 0, 10), (4, 4, 10), (10, 10, 20)], tokens=[10, 6, 10])
    assert speed.steady_state(rows, {"a": 2})["a"] == pytest.approx(2.0)
    assert 26 / 20 < 2.0  # what end to end says


def test_steady_state_at_one_stream_is_end_to_end_for_back_to_back_requests():
    rows = frame([(0, 1, 10), (10, 11, 20)])
    assert speed.steady_state(rows, {"a": 1})["a"] == pytest.approx(1.0)


def test_fewer_conversations_than_streams_never_were_steady():
    assert np.isnan(speed.steady_state(frame([(0, 1, 10)]), {"a": 2})["a"])


def test_turns_of_a_conversation_hold_one_stream():
    """Stream 1: one conversation of two turns, 0-20. Stream 2: 0-18. Steady until 18, not until 10."""
    rows = frame([(0, 0, 10), (10, 10, 20), (0, 0, 18)], tokens=[10, 10, 18], prompt_id=["a", "a", "b"])
    assert speed.steady_state(rows, {"a": 2})["a"] == pytest.approx(2.0)


def test_one_token_requests_are_counted_where_they_end():
    rows = frame([(0, 5, 5), (5, 10, 10)], tokens=1)
    assert speed.steady_state(rows, {"a": 1})["a"] == pytest.approx(0.2)


def test_a_first_token_that_was_not_seen_falls_back_to_the_send():
    rows = frame([(0, np.nan, 10)])
    assert speed.steady_state(rows, {"a": 1})["a"] == pytest.approx(1.0)

"""The checks of rows, on simulated requests and on each way of breaking them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.prompts.chat_template import ids_hash
from harness.store import row_checks
from harness.store.cell_file import as_table
from tests.harness.made import cell, row

WINDOW = 16
AR = {"verify_ct": None, "correct_drafts": None, "histogram": None}


def defects(*rows, wall_s=None, **changes):
    return row_checks.defects(as_table(rows), cell(prompts=len(rows), **changes), WINDOW, wall_s)


def simulated(blocks, completion, **changes):
    counts = tuple(blocks.count(d) for d in range(WINDOW))
    return row(
        verify_ct=len(blocks), correct_drafts=sum(blocks), histogram=counts, completion_tokens=completion, **changes
    )


@given(st.lists(st.integers(0, WINDOW - 1), min_size=1, max_size=40), st.data())
def test_any_request_cut_inside_its_last_block_passes(blocks, data):
    """Blocks of d drafts and a bonus; the answer may end at any token of the last block."""
    total = 1 + sum(blocks) + len(blocks)
    completion = data.draw(st.integers(total - blocks[-1], total))
    assert defects(simulated(blocks, completion), max_new_tokens=1000) == []


def plain(made):
    """The identities of one row, written as the definitions say them."""
    cut = 1 + made.correct_drafts + made.verify_ct - made.completion_tokens
    return (
        sum(made.histogram) == made.verify_ct
        and sum(i * n for i, n in enumerate(made.histogram)) == made.correct_drafts
        and 0 <= cut < WINDOW
    )


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 2, st.lists(st.integers(0, 2), max_size=4)), min_size=1, max_size=5))
def test_many_rows_at_once_are_judged_as_each_alone(drawn):
    rows = [
        row(i, verify_ct=v, correct_drafts=c, histogram=tuple(h), completion_tokens=4, prompt_id=f"p{i}")
        for i, (v, c, h) in enumerate(drawn)
    ]
    found = row_checks.defects(as_table(rows), cell(prompts=len(rows)), WINDOW)
    wrong = [made.prompt_id for made in rows if not plain(made)]
    named = [text.partition("/")[0] for text in found if not text.startswith("and ")]
    assert set(named) <= set(wrong)
    assert bool(named) == bool(wrong)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"verify_ct": 4}, "sum(histogram) 3 != verify_ct 4"),
        ({"correct_drafts": 6}, "sum(i*histogram[i]) 5 != correct_drafts 6"),
        ({"completion_tokens": 10}, "= -1, outside"),
        ({"histogram": (1, 0, 1, 1, 0, -1, 1)}, "a negative count"),
        ({"histogram": (2, *(0,) * 15, 1), "correct_drafts": 16}, "a block of 16 drafts, and the window is 16"),
        ({"completion_tokens": 65}, "completion_tokens 65, and the limit is 64"),
        ({"completion_tokens": 0}, "no token at all"),
        ({"prompt_tokens": -1}, "prompt_tokens is -1"),
        ({"retractions": -1}, "retractions is -1"),
        ({"verify_ct": -1}, "verify_ct is -1"),
        ({"done_s": 0.05}, "sent at 0 s, first token at 0.1 s, done at 0.05 s"),
        ({"sent_s": -1.0}, "sent at -1 s"),
        ({"done_s": float("nan")}, "done at nan s"),
        ({"output_ids": (1, 2)}, "completion_tokens 8, and the answer has 2 token ids"),
        ({"output_ids": tuple(range(8))}, "output_hash is not that of output_ids"),
        ({"verify_ct": None}, "no spec counts for 8 tokens"),
        ({"histogram": None}, "without correct drafts or histogram"),
        ({"outcome": "timeout", "reason": "too late"}, "too late"),
    ],
)
def test_each_defect_is_named(change, text):
    found = defects(row(**change))
    assert any(text in reason for reason in found), found


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"completion_tokens": 130}, "completion_tokens 130, and the limit is 64"),  # twice the tokens
        ({"verify_ct": 3}, "spec counts from an autoregressive server"),
        ({"correct_drafts": 3}, "spec counts from an autoregressive server"),
        ({"completion_tokens": -8}, "completion_tokens is -8"),
        ({"output_ids": (1,)}, "the answer has 1 token ids"),
    ],
)
def test_ar_rows_are_checked_too(change, text):
    assert text in "; ".join(defects(row(**{**AR, **change}), arm="ar", proposal="none"))


def test_ar_rows_retracted_requests_and_kept_ids_pass():
    ids = tuple(range(8))
    assert defects(row(**AR), arm="ar", proposal="none") == []
    assert defects(row(completion_tokens=10, retractions=1)) == []
    assert defects(row(output_ids=ids, output_hash=ids_hash(ids))) == []
    assert defects(row(completion_tokens=1, **AR)) == []


def test_a_cell_that_ignores_the_end_token_never_stops():
    assert defects(row(finish_reason="stop")) == []
    assert "it stopped by itself" in defects(row(finish_reason="stop"), ignore_eos=True)[0]


@pytest.mark.parametrize(
    "places",
    [
        [(0, 0)], [(0, 0), (2, 0)], [(1, 0), (2, 0)], [(0, 0), (1, 0), (1, 0)], [(0, 0), (0, 2), (1, 0)],
        [(0, 1), (1, 0)], [(1, 0), (0, 0)], [(0, 0), (1, 0), (2, 0)], [],
    ],
)  # fmt: skip
def test_lacking_doubled_and_shuffled_rows_are_refused(places):
    rows = [row(index, turn=turn) for index, turn in places]
    assert "rows are lacking or doubled" in row_checks.defects(as_table(rows), cell(prompts=2), WINDOW)[-1]


def test_turns_in_order_pass_and_a_turn_of_another_prompt_does_not():
    rows = [row(0), row(0, turn=1), row(1)]
    assert row_checks.defects(as_table(rows), cell(prompts=2), WINDOW) == []
    rows[1] = row(0, turn=1, prompt_id="other")
    assert "lacking or doubled" in row_checks.defects(as_table(rows), cell(prompts=2), WINDOW)[0]


def test_the_wall_is_the_rows_own():
    assert defects(row(0), row(1), wall_s=0.9) == []
    assert defects(row(0), row(1), wall_s=1.8) == ["wall_s is 1.8, and the rows span 0.9 s"]


def test_many_defects_are_counted_not_listed():
    found = defects(*(row(i, correct_drafts=6) for i in range(10)))
    assert len(found) == 4
    assert found[-1] == "and 7 more"


STREAMED = {"chunk_s": (0.1, 0.2, 0.3), "chunk_tokens": (1, 4, 8)}


@pytest.mark.parametrize(
    ("stream", "changes", "text"),
    [
        (True, {}, ""),
        (False, {}, "arrivals of chunks, and the cell's answers are not streamed"),
        (True, {"chunk_s": (0.1, 0.3, 0.2)}, "one after another"),
        (True, {"chunk_s": (0.1, 0.2, 0.5)}, "one after another, between send and end"),
        (True, {"chunk_s": (0.1, 0.2)}, "one after another"),
        (True, {"chunk_tokens": (1, 4, 7)}, "chunks of 7 tokens in all, and the answer has 8"),
        (True, {"chunk_tokens": (4, 4, 8)}, "chunks of 8 tokens in all"),
        (True, {"chunk_s": None, "chunk_tokens": None}, "chunks of 0 tokens in all, and the answer has 8"),
    ],
)
def test_arrivals_are_those_of_the_answer(stream, changes, text):
    found = defects(row(**{**STREAMED, **changes}), stream=stream)
    assert bool(found) == bool(text)
    assert text in "".join(found)


@pytest.mark.parametrize("first", [None, 0.0, 0.5, 1.0, 1.0 + 5e-7, -5e-7])
def test_a_first_token_may_come_with_the_last_or_at_once(first):
    """One token is first and last; the readings of the clock are rounded."""
    assert defects(row(sent_s=0.0, first_token_s=first, done_s=1.0)) == []


@pytest.mark.parametrize("first", [1.0 + 2e-6, -2e-6])
def test_a_first_token_outside_its_request_is_refused(first):
    assert len(defects(row(sent_s=0.0, first_token_s=first, done_s=1.0))) == 1

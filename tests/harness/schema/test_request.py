"""The count identities, on simulated requests and on each way of breaking them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.schema.request import broken_identities
from tests.harness.made import row

WINDOW = 16


@given(st.lists(st.integers(0, WINDOW - 1), min_size=1, max_size=40), st.data())
def test_any_request_cut_inside_its_last_block_keeps_them(blocks, data):
    """Blocks of d drafts and a bonus; the answer may end at any token of the last block."""
    total = 1 + sum(blocks) + len(blocks)
    completion = data.draw(st.integers(total - blocks[-1], total))
    counts = tuple(blocks.count(d) for d in range(WINDOW))
    made = row(verify_ct=len(blocks), correct_drafts=sum(blocks), histogram=counts, completion_tokens=completion)
    assert broken_identities(made, WINDOW) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"verify_ct": 4}, "sum(histogram) 3 != verify_ct 4"),
        ({"correct_drafts": 6}, "sum(i*histogram[i]) != correct_drafts 6"),
        ({"completion_tokens": 10}, "= -1, outside"),
        ({"completion_tokens": 9 - WINDOW}, "= 16, outside"),
    ],
)
def test_each_broken_identity_is_named(change, text):
    assert any(text in reason for reason in broken_identities(row(**change), WINDOW))


def test_ar_rows_and_retracted_requests():
    assert broken_identities(row(verify_ct=None, correct_drafts=None, histogram=None), WINDOW) == []
    assert broken_identities(row(completion_tokens=10, retractions=1), WINDOW) == []

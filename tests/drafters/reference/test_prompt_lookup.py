"""Prompt-lookup drafting on hand-made contexts."""

import pytest

from drafters.reference.prompt_lookup import lookup


@pytest.mark.parametrize(
    ("context", "slots", "draft"),
    [
        ([1, 2, 3, 4, 1, 2, 3], 4, [4, 1, 2, 3]),
        ([1, 2, 3, 4, 1, 2, 3], 1, [4]),
        ([7, 2, 8, 1, 2, 9, 5, 2], 2, [9, 5]),  # the latest occurrence of 2
        ([1, 2, 3, 5, 2, 3, 6, 1, 2, 3], 1, [5]),  # the longest match beats the latest
        ([4, 4], 3, [4]),
        ([1, 2, 3], 3, []),
        ([1], 3, []),
    ],
)
def test_the_draft_is_what_followed(context, slots, draft):
    assert lookup(context, slots) == draft

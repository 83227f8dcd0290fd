"""What forbids a number and what doubts it, on rows made by hand."""

from dataclasses import replace

import pytest

from harness.measure.validity import cautions, objections, refusals
from harness.schema.cell import Cell
from harness.schema.request import Row
from harness.serve.responses import ServerInfo

WELL = ServerInfo(served_name="x", sglang_version="0.5.23", attestation={}, downgrades=(), verification="exact")


def cell(**changes):
    fields = {
        "target": "m", "target_digest": "t", "arm": "dflash", "proposal": "argmax", "draft_digest": "d",
        "prompt_set": "s", "prompt_version": "v", "temperature": 0.0, "seed": 42, "concurrency": 1, "prompts": 1,
        "max_new_tokens": 16, "device": "cpu",
    }  # fmt: skip
    return Cell(**{**fields, **changes})


def row(**changes):
    """Three blocks that commit 0, 2 and 3 drafts: 1 + 3 + 5 tokens, one cut off."""
    fields = {
        "index": 0, "prompt_id": "p", "prompt_hash": "h", "prompt_tokens": 4, "completion_tokens": 8, "verify_ct": 3,
        "correct_drafts": 5, "histogram": (1, 0, 1, 1), "sent_s": 0.0, "done_s": 1.0, "output_hash": "o",
    }  # fmt: skip
    return Row(**{**fields, **changes})


def test_a_sound_cell_has_no_objection():
    assert objections([row()], cell(), 16, WELL, "") == []


@pytest.mark.parametrize(
    ("changes", "arm", "words"),
    [
        ({"histogram": (0, 0, 1, 1)}, "dflash", "sum(histogram) 2 != verify_ct 3"),
        ({"correct_drafts": 6}, "dflash", "!= correct_drafts 6"),
        ({"completion_tokens": 10}, "dflash", "outside [0, 16)"),
        ({"verify_ct": None}, "dflash", "no spec counts for 8 tokens"),
        ({"histogram": None}, "dflash", "without correct drafts or histogram"),
        ({}, "ar", "spec counts from an autoregressive server"),
        ({"outcome": "invalid", "reason": "sent 4 tokens, the server counted 5"}, "dflash", "the server counted 5"),
    ],
)
def test_each_defect_of_a_row_is_named(changes, arm, words):
    proposal = "none" if arm == "ar" else "argmax"
    (found,) = objections([row(**changes)], cell(arm=arm, proposal=proposal), 16, WELL, "")
    assert found.startswith("p/0: ")
    assert words in found


def test_a_request_that_ends_in_its_prefill_needs_no_counts():
    one = row(completion_tokens=1, verify_ct=None, correct_drafts=None, histogram=None)
    assert objections([one], cell(), 16, WELL, "") == []


def test_many_defects_are_counted_not_listed():
    found = objections([row(index=i, correct_drafts=6) for i in range(10)], cell(prompts=10), 16, WELL, "")
    assert len(found) == 4
    assert found[-1] == "and 7 more"


def test_the_server_may_spoil_its_cell_at_the_end():
    fallen = ServerInfo(
        served_name="x", sglang_version="0.5.23", attestation={}, downgrades=("slow",), verification="greedy"
    )
    found = objections([row()], cell(), 16, fallen, "WARNING KV cache pool is full. Retract requests.")
    assert [text.partition(":")[0] for text in found] == [
        "requests were retracted", "the server left a path", "verification is greedy"
    ]  # fmt: skip


def test_only_a_remote_server_may_lack_an_attestation():
    bare = ServerInfo(served_name="x", sglang_version="0.5.23", attestation=None, downgrades=(), verification="")
    assert refusals(bare, cell(), "", remote=True, window=16) == []
    assert refusals(bare, cell(), "", remote=False, window=16) != []


def test_a_remote_server_without_attestation_must_have_the_cells_arguments():
    said = {"dtype": "bfloat16", "speculative_algorithm": "DFLASH", "random_seed": 42, "context_length": 8192}
    bare = ServerInfo(
        served_name="x", sglang_version="0.5.23", attestation=None, downgrades=(), verification="", arguments=said
    )
    assert refusals(bare, cell(), "", remote=True, window=16) == []
    for key, value in (
        ("dtype", "float16"),
        ("random_seed", 1),
        ("context_length", 99),
        ("speculative_algorithm", "X"),
    ):
        (found,) = refusals(replace(bare, arguments={**said, key: value}), cell(), "", remote=True, window=16)
        assert found.startswith(f"{key}: wanted ")
    assert refusals(replace(bare, arguments={**said, "dtype": "auto"}), cell(), "", remote=True, window=16) == []
    assert refusals(replace(bare, running=3), cell(capacity=4), "", remote=True, window=16) != []


def test_cautions_say_what_to_do():
    rows = [row(cached_tokens=3, retractions=1)]
    found = cautions(rows, 1.0, cell(), min_wall_s=10.0)
    assert found == [
        "3 verify blocks, fewer than 200: take more prompts",
        "3 prompt tokens came from a prefix cache: pass --disable-radix-cache",
        "1 requests were retracted: lower the concurrency or give the server more memory",
        "measured for 1.0 s, less than 10 s: take more prompts",
    ]


def test_a_slow_first_request_and_a_slow_second_half_are_seen_at_concurrency_1_only():
    def cautioned(seconds, concurrency=1):
        rows = [row(index=i, done_s=s, verify_ct=100) for i, s in enumerate(seconds)]
        return [text.partition(":")[0] for text in cautions(rows, 1.0, cell(concurrency=concurrency), 0.0)]

    assert cautioned([1.0] * 20) == []
    assert cautioned([5.0] + [1.0] * 19) == ["the first request took 5.0 times the usual"]
    assert cautioned([1.0] * 10 + [1.2] * 10) == ["the second half was 20 % slower a block than the first"]
    assert cautioned([5.0] + [1.0] * 9 + [9.0] * 10, concurrency=2) == []


def said(rows, wall_s=60.0, min_wall_s=0.0, **changes):
    """The cautions, each without its remedy."""
    return [text.rpartition(": ")[0] for text in cautions(rows, wall_s, cell(**changes), min_wall_s)]


def spaced(seconds, **changes):
    """Requests one after another, a second apart, each with blocks enough."""
    return [
        row(index=i, sent_s=100.0 * i, done_s=100.0 * i + s, **{"verify_ct": 100, **changes})
        for i, s in enumerate(seconds)
    ]


def test_200_blocks_are_enough_and_ar_has_none():
    assert said([row(verify_ct=199)]) == ["199 verify blocks, fewer than 200"]
    assert said([row(verify_ct=200)]) == []
    assert said([row(verify_ct=None)], arm="ar", proposal="none") == []
    assert said([row(verify_ct=None), row(verify_ct=198)]) == ["198 verify blocks, fewer than 200"]


def test_a_wall_that_is_just_long_enough_is():
    assert said([row(verify_ct=200)], wall_s=10.0, min_wall_s=10.0) == []
    assert said([row(verify_ct=200)], wall_s=9.9, min_wall_s=10.0) == ["measured for 9.9 s, less than 10 s"]


def test_only_requests_that_were_retracted_are_counted():
    assert said([row(verify_ct=200), row(verify_ct=200, retractions=2)]) == ["1 requests were retracted"]


def test_a_concurrency_that_is_reached_is_not_doubted():
    both = [row(verify_ct=200), row(verify_ct=200)]
    assert said(both, concurrency=2) == []
    assert said(both, concurrency=3) == ["concurrency 3 was never reached, at most 2"]


def test_a_drafter_that_collapses_is_cautioned():
    rows = [row(index=i, verify_ct=40, correct_drafts=240 if i < 15 else 0) for i in range(30)]
    (found,) = cautions(rows, 60.0, cell(), 0.0)
    assert found.startswith("tau went from 7.00 to 1.00 ")


def test_the_first_request_is_held_against_the_usual_time_a_token():
    """Three times is let pass; fewer than four requests have no usual; a longer answer may take longer."""
    assert said(spaced([3.0, 1.0, 1.0, 1.0])) == []
    assert said(spaced([3.1, 1.0, 1.0, 1.0])) == ["the first request took 3.1 times the usual"]
    assert said(spaced([9.0, 1.0, 1.0])) == []
    assert said(spaced([3.1, 3.1, 1.0, 1.0, 1.0])) == ["the first request took 3.1 times the usual"]
    longer = spaced([1.0, 1.0, 1.0, 1.0])
    assert said([replace(longer[0], completion_tokens=80, done_s=10.0), *longer[1:]]) == []
    assert said(spaced([1.0, 3.2, 3.2, 3.2, 1.0])) == []
    assert said(spaced([3.2, 1.0, 1.0, 1.2])) == ["the first request took 3.2 times the usual"]
    short = [replace(spaced([1.0])[0], completion_tokens=1), *spaced([2.0] * 4)[1:]]
    assert said(short) == ["the first request took 4.0 times the usual"]


def test_the_halves_are_held_against_each_other_by_the_block():
    """10 % is let pass, from eight requests a half on; without blocks by the token."""
    assert said(spaced([1.0] * 8 + [1.09] * 8)) == []
    assert said(spaced([1.0] * 8 + [1.12] * 8)) == ["the second half was 12 % slower a block than the first"]
    assert said(spaced([1.0] * 8 + [2.0] * 8)) == ["the second half was 100 % slower a block than the first"]
    assert said(spaced([1.0] * 7 + [1.5] * 7)) == []
    doubled = spaced([1.0] * 8) + [replace(r, verify_ct=200) for r in spaced([2.0] * 8)]
    assert said(doubled) == []
    plain = spaced([1.0] * 8 + [1.2] * 8, verify_ct=None)
    assert said(plain, arm="ar", proposal="none") == ["the second half was 20 % slower a block than the first"]


def test_the_servers_own_counters_are_held_against_the_rows():
    own = {"requests": 1, "tokens": 8, "verify_calls": 3}
    assert objections([row()], cell(), 16, WELL, "", own) == []
    (found,) = objections([row()], cell(), 16, WELL, "", {**own, "requests": 2})
    assert "server counted 2 requests" in found

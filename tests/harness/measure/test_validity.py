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

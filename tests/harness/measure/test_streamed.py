"""Streaming clients against the fake server: the same counts, arrivals beside them, and each way of going wrong."""

import dataclasses
import itertools

import pytest

from harness.measure.launch import Order, Session, Watchers
from harness.report import latency
from harness.store import run as store
from harness.sweep import plan
from tests.harness.measure.conftest import SWEEP


@pytest.fixture(scope="module")
def streamed(files, tmp_path_factory):
    """(sweep, plan) that stream."""
    path = tmp_path_factory.mktemp("streamed") / "sweep.toml"
    path.write_text(SWEEP.format(folder=files).replace("\n[target.tiny]", "\nstream = true\n[target.tiny]", 1))
    return plan.make(path, [files / "data"])


def measure(run, streamed, arm="dflash"):
    sweep, made = streamed
    allocation = made.allocations[0]
    launch = next(launch for launch in allocation.launches if launch.arm == arm)
    headers = []
    Session(
        order=Order(run_dir=run.out, sweep=sweep, data_dirs=(run.files / "data",)),
        allocation=allocation,
        planned=launch,
        desk=run.desk,
        watchers=Watchers(cell=headers.append),
        left=list(launch.cells[:1]),
    ).run()
    return headers[0]


def test_rows_are_those_of_whole_answers_with_arrivals_beside_them(run, fake, streamed):
    header, (whole,) = measure(run, streamed), run.launch()
    assert (header.outcome, header.cautions) == ("ok", whole.cautions)
    assert header.cell.id != whole.cell.id
    assert header.cell == dataclasses.replace(whole.cell, stream=True)
    timeless = dict.fromkeys(("sent_s", "first_token_s", "done_s"), 0.0) | {"chunk_s": None, "chunk_tokens": None}
    rows = run.rows(header)
    assert [dataclasses.replace(r, **timeless) for r in rows] == [
        dataclasses.replace(r, **timeless) for r in run.rows(whole)
    ]
    for row in rows:
        assert row.chunk_tokens == (1, 6, 11, 16, 21, 24)
        times = [row.sent_s, *row.chunk_s, row.done_s]
        assert all(a <= b for a, b in itertools.pairwise(times))
        assert row.first_token_s == row.chunk_s[0]
    assert {r.chunk_s for r in run.rows(whole)} == {None}


@pytest.mark.parametrize(
    ("wrong", "outcome", "reason"),
    [
        ({"stream": "cut"}, "aborted", "the stream ended before its end marker"),
        ({"stream": "error"}, "aborted", "the stream ended in an error: [/red] out of memory"),
        ({"stream": "junk"}, "invalid", "no event of a stream: 'junk'"),
        ({"stream": "empty"}, "invalid", "/generate"),
        ({"miscounts": True}, "invalid", "24 token ids came back, the server counted 25"),
        ({"refuses_at": 2}, "invalid", "HTTP 400: the input is too long"),
        ({"aborts_at": 2}, "aborted", "out of patience"),
        ({"dies_at": 3}, "server_died", "SIGKILL"),
    ],
)
def test_a_stream_that_goes_wrong_is_an_outcome_with_its_reason(run, fake, streamed, wrong, outcome, reason):
    fake(dflash=wrong)
    header = measure(run, streamed)
    assert header.outcome == outcome, header.reason
    assert reason in header.reason


def test_the_report_has_the_gaps_of_streamed_answers(run, fake, streamed):
    header = measure(run, streamed)
    frames = store.load(run.out)
    table = latency.table(frames.cells, frames.rows)
    gaps = sorted(1000 * (b - a) for r in run.rows(header) for a, b in itertools.pairwise(r.chunk_s))
    at = next(i for i, column in enumerate(table.columns) if column.group == latency.GAPS)
    median = table.rows[0].cells[at].content
    assert (median.n, gaps[0] <= median.value <= gaps[-1]) == (len(gaps), True)
    assert median.value == pytest.approx((gaps[(len(gaps) - 1) // 2] + gaps[len(gaps) // 2]) / 2)
    assert "first token, ms a token and gaps: the client's clock" in table.notes[0]

"""A server that answers what SGLang would not, hangs, drips or dies: a failed row or cell, and the run goes on."""

import dataclasses
import sys

import pytest

from harness.schema.failure import Failure
from harness.serve import client
from harness.serve.responses import Answer
from tests.harness.measure.conftest import FAKE

sys.path.insert(0, str(FAKE / "sglang"))
import hostile

sys.path.remove(str(FAKE / "sglang"))
SERVED = ("completion null", "prompt count wrong", "histogram too long", "clock jumps on", "ids huge")
KINDS = (*SERVED, *hostile.BODIES, "odd charset", "HTTP 500", "redirect", "closes", "half then closes", "drips")
JUDGED = ("prompt count wrong", "clock jumps on")  # well formed: it is the request that shows them wrong
GOOD = ("odd charset",)  # an answer all the same


def impatient(run, **timeouts):
    server = dataclasses.replace(run.sweep.server, **timeouts)
    return dataclasses.replace(run.sweep, server=server)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_answer_fails_its_cell_and_no_other(run, fake, kind):
    fake(dflash={"hostile": kind, "hostile_at": 2})
    (header,) = run.launch(sweep=impatient(run, request_timeout_s=2.0))
    if kind in GOOD:
        assert header.outcome == "ok"
        return
    assert header.outcome in ("invalid", "aborted", "timeout", "server_died"), header
    assert header.reason
    assert "\n" not in header.reason
    assert header.wall_s is None
    rows = run.rows(header)
    assert [row.outcome for row in rows[:1]] == ["ok"]
    assert all(row.outcome != "ok" and row.reason for row in rows[1:2])


ANSWER = {
    "text": "a",
    "output_ids": [1, 2],
    "meta_info": {
        "finish_reason": {"type": "length"},
        "prompt_tokens": 4,
        "completion_tokens": 2,
        "cached_tokens": 0,
        "num_retractions": 0,
        "first_token_latency": 0.1,
    },
}


@pytest.mark.parametrize("kind", [kind for kind in hostile.ANSWERS if kind not in JUDGED])
def test_an_answer_of_another_shape_is_a_failure_that_names_it(kind):
    Answer.parse(ANSWER)
    with pytest.raises(Failure) as caught:
        Answer.parse(hostile.ANSWERS[kind](ANSWER))
    assert caught.value.outcome == "invalid"
    assert caught.value.reason.startswith("/generate")


def test_one_bad_answer_does_not_cost_the_cells_after_it(run, fake):
    """Eight of twelve cells were lost to one."""
    fake(dflash={"hostile": "completion text", "hostile_at": 8})
    assert [h.outcome for h in run.launch(cells=3)] == ["ok", "invalid", "ok"]


INFO = {
    "no states": {"internal_states": None},
    "states text": {"internal_states": ["x"]},
    "name a number": {"served_model_name": 7},
    "version null": {"version": None},
    "attestation a list": {"specbench": ["x"]},
    "attestation text": {"specbench": "yes"},
    "window text": {"specbench": {"window": "16"}},
    "window huge": {"specbench": {"window": 10**12}},
    "patches a list": {"specbench": {"patches": ["a"]}},
    "downgrades text": {"internal_states": [{"specbench": {"downgrades": "x"}}]},
    "verification a number": {"internal_states": [{"specbench": {"verification": 1}}]},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", INFO)
def test_a_strange_server_info_is_an_outcome(run, fake, kind):
    fake(dflash={"info": INFO[kind]})
    (header,) = run.launch()
    assert header.outcome in ("invalid", "not_attested", "infrastructure")
    assert header.reason


@pytest.mark.slow
@pytest.mark.parametrize("route", ["/server_info", "/flush_cache", "/freeze_gc"])
@pytest.mark.parametrize("how", ["hangs", "fails"])
def test_no_route_can_hold_the_run(run, fake, monkeypatch, route, how):
    monkeypatch.setattr(client, "INFO_TIMEOUT_S", 1.0)
    monkeypatch.setattr(client, "FLUSH_TIMEOUT_S", 0.5)
    fake(dflash={how: route})
    (header,) = run.launch()
    assert header.outcome in ("server_died", "invalid")
    assert route in header.reason


def test_last_words_with_brackets_do_not_end_the_run(run, fake, capsys):
    from harness.measure.progress import Reporter
    from sglang_specbench.console import Console

    fake(dflash={"dies_at_start": "ValueError: [/red] [bold] :smile:"})
    (header,) = run.launch()
    with Reporter(Console(), 4, 1) as reporter:
        reporter.note(header.reason)
        reporter.cell(header)
    assert "ValueError: [/red] [bold] :smile:" in capsys.readouterr().out

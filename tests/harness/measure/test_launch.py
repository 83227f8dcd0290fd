"""One launch against the fake server: what a good cell holds, and what each way of going wrong becomes."""

import dataclasses
import errno
import json
import shutil
import socket

import pytest

from harness.measure import launch as session
from harness.prompts.chat_template import ids_hash, messages
from harness.serve.server import HOST
from harness.store import cell_file
from harness.sweep import plan
from sglang_specbench.errors import UserError
from tests.harness.measure.conftest import Run


def test_a_good_cell_holds_rows_in_order_and_the_whole_story(run, fake):
    (header,) = run.launch()
    rows = run.rows(header)
    assert header.outcome == "ok"
    assert [(r.index, r.prompt_id, r.turn) for r in rows] == [
        (0, "p0", 0), (1, "p1", 0), (1, "p1", 1), (2, "p2", 0), (3, "p3", 0), (3, "p3", 1)
    ]  # fmt: skip
    assert {r.outcome for r in rows} == {"ok"}
    assert all(r.completion_tokens == 24 and r.verify_ct > 0 and r.sent_s < r.first_token_s < r.done_s for r in rows)
    assert header.wall_s == pytest.approx(rows[-1].done_s - rows[0].sent_s)
    assert rows[0].output_ids is None
    assert header.environment["attested"] is True
    assert header.attestation["draft_model"] == "DFlashDraftModel"
    assert header.warmup["requests"] == 2
    assert header.log_tail == ""
    assert any("fewer than 200" in caution for caution in header.cautions)


def test_the_second_turn_is_rendered_with_the_live_answer(run, fake):
    (header,) = run.launch(keep_output=True)
    rows = run.rows(header)
    prompt = run.desk.get(header.cell).conversations[1].prompt
    talk = messages(prompt, [rows[1].text])
    assert rows[1].text.startswith("answer ")
    assert rows[2].prompt_hash == ids_hash(run.desk.renderer.render(talk))
    assert rows[2].output_ids is not None


@pytest.mark.parametrize(
    ("faults", "outcome", "reason"),
    [
        ({"broken_histogram": True}, "invalid", r"sum\(histogram\) \d+ != verify_ct"),
        ({"miscounts": True}, "invalid", "p0/0: 24 token ids came back, the server counted 25"),
        ({"foreign": True}, "invalid", "the server counted 7 requests in the meantime, the rows hold 6"),
        ({"foreign": True}, "invalid", r"the server counted \d+ verify calls in the meantime, the rows hold \d+"),
        ({"overcounts": True}, "invalid", "completion_tokens 64, and the limit is 24"),
        ({"overcounts": True}, "invalid", r"outside \[0, 16\)"),
        ({"no_counts": True}, "invalid", "no spec counts for 24 tokens"),
        ({"aborts_at": 2}, "aborted", "out of patience"),
        ({"refuses_at": 2}, "invalid", "HTTP 400: the input is too long"),
        ({"downgrades": ["a kernel fell back"]}, "invalid", "the server left a path: a kernel fell back"),
        ({"prints_at": 2, "line": "KV cache pool is full"}, "invalid", "the KV pool is too small"),
        ({"dies_at": 3}, "server_died", "the server was ended by SIGKILL"),
        (
            {"prints_at": 2, "line": "Scheduler hit an exception: Traceback\nValueError: boom", "hangs_at": 2},
            "server_died",
            "the server crashed: ValueError: boom",
        ),
        ({"prints_at": 2, "line": "torch.OutOfMemoryError", "dies_at": 2}, "oom", "SIGKILL"),
        ({"dies_at_start": "bad flag"}, "server_died", "exited with code 1"),
        ({"no_attestation": True}, "not_attested", "no attestation"),
        ({"attests": {"proposal": "sampled"}}, "not_attested", "proposal: wanted 'argmax', server says 'sampled'"),
        ({"attests": {"target_digest": "0"}}, "not_attested", "target_digest"),
        ({"attests": {"draft_digest": "0"}}, "not_attested", "draft_digest"),
        ({"attests": {"arm": "domino"}}, "not_attested", "arm: wanted 'dflash', server says 'domino'"),
        ({"attests": {"dtype": "bfloat16"}}, "not_attested", "dtype: wanted 'float32', server says 'bfloat16'"),
        ({"arguments": {"dtype": "bfloat16"}}, "not_attested", "dtype: wanted 'float32', server says 'bfloat16'"),
        ({"arguments": {"context_length": 256}}, "not_attested", "context_length: wanted 512, server says 256"),
        ({"arguments": {"random_seed": 7}}, "not_attested", "random_seed: wanted 42, server says 7"),
        ({"arguments": {"speculative_algorithm": "NGRAM"}}, "not_attested", "speculative_algorithm: wanted 'DFLASH'"),
        ({"max_running": 1}, "not_attested", "capacity: wanted 2 requests at once, server takes 1"),
        ({"attests": {"verification": "greedy"}}, "not_attested", "verification: wanted 'exact'"),
        ({"wrong_name": True}, "infrastructure", "another server answers on port"),
        ({"busy_flushes": 1}, "invalid", "/flush_cache: HTTP 400: Flush cache failed."),
    ],
)
def test_each_fault_is_an_outcome_with_its_reason(run, fake, faults, outcome, reason):
    fake(dflash=faults)
    (header,) = run.launch()
    assert header.outcome == outcome, header.reason
    assert header.wall_s is None
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(header.reason)
    if outcome in ("server_died", "oom"):
        assert header.log_tail


def test_a_late_answer_is_a_row_and_a_cell_with_the_outcome_timeout(run, fake):
    fake(dflash={"hangs_at": 3})
    (header,) = run.launch(sweep=_impatient(run, request_timeout_s=0.5))
    rows = run.rows(header)
    assert header.outcome == "timeout"
    assert [(r.outcome, r.reason) for r in rows] == [("ok", ""), ("ok", ""), ("timeout", "no answer within 0.5 s")]


def test_a_server_that_never_gets_ready_is_a_timeout(run, fake):
    fake(dflash={"never_ready": True})
    (header,) = run.launch(sweep=_impatient(run, start_timeout_s=1.5))
    assert (header.outcome, header.reason) == ("timeout", "the server was not ready within 1.5 s")


def _impatient(run, **timeouts):
    return dataclasses.replace(run.sweep, server=dataclasses.replace(run.sweep.server, **timeouts))


def test_a_dead_server_costs_its_cell_only(run, fake):
    """Six requests a cell; every server dies at its eighth: cells 2 and 4 die, 1 and 3 are measured."""
    fake(dflash={"dies_at": 8})
    headers = run.launch(cells=4)
    assert [h.outcome for h in headers] == ["ok", "server_died", "ok", "server_died"]
    assert len(run.rows(headers[1])) == 1  # what was answered; nothing is invented for the rest


def test_eos_inside_a_block_is_no_defect(run, fake):
    fake(dflash={"eos_in_block": True})
    (header,) = run.launch()
    assert header.outcome == "ok"
    assert {r.finish_reason for r in run.rows(header)} == {"stop"}


def test_a_traceback_that_the_server_survives_is_a_caution(run, fake):
    fake(dflash={"prints_at": 2, "line": "Traceback (most recent call last)"})
    (header,) = run.launch()
    assert header.outcome == "ok"
    assert "the server printed a traceback while the cell ran: read its log" in header.cautions


def test_retractions_are_kept_and_doubted(run, fake):
    fake(dflash={"retracts": True})
    (header,) = run.launch()
    assert header.outcome == "ok"
    assert any("6 requests were retracted" in caution for caution in header.cautions)


def test_a_taken_port_is_a_failed_cell_not_a_crash(run, fake, monkeypatch):
    with socket.socket() as squatter:
        squatter.bind((HOST, 0))
        squatter.listen()
        monkeypatch.setattr(session, "free_port", lambda: squatter.getsockname()[1])
        (header,) = run.launch()
    assert header.outcome == "infrastructure"
    assert "is taken: Address already in use" in header.reason


def test_a_missing_prompt_set_fails_its_cells_without_a_server(run, fake, monkeypatch, files, desk):
    fake(every={"dies_at_start": "must not be started"})
    monkeypatch.setattr(run, "desk", type(desk)(files / "target", []))
    monkeypatch.setattr(session.Desk, "get", _missing)
    (header,) = run.launch()
    assert (header.outcome, header.reason) == ("missing_set", "it is not here")


def _missing(*_):
    raise session.MissingSet("it is not here")


def test_a_full_disk_stops_with_one_line_and_no_half_file(run, fake, monkeypatch):
    def full(path, *_):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(cell_file, "write", full)
    with pytest.raises(UserError, match="cannot be written: No space left on device") as caught:
        run.launch()
    assert caught.value.exit_code == 5
    assert list((run.out / "cells").iterdir()) == []


def test_a_cell_keeps_what_the_server_counted_and_how_busy_the_machine_was(run, fake):
    (header,) = run.launch()
    rows = run.rows(header)
    sums = {"requests": 6, "tokens": 6 * 24, "verify_calls": sum(r.verify_ct for r in rows)}
    assert header.counters == sums
    assert header.reached == 1
    assert header.call
    assert header.server_args["context_length"] == 512
    assert header.machine["cores"] > 0
    assert 0 <= header.machine["other_cpu"] <= 1
    assert 0 < header.machine["own_cpu"] <= 1


def test_a_server_without_metrics_is_measured_all_the_same(run, fake):
    fake(dflash={"no_metrics": True})
    (header,) = run.launch()
    assert (header.outcome, header.counters) == ("ok", {})


def test_a_drafter_of_another_width_is_measured_at_its_own(tmp_path, files, desk, fake):
    """Block size 8 in the checkpoint: launched, attested, judged and stored as 8."""
    folder = tmp_path / "narrow"
    shutil.copytree(files / "dflash", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "block_size": 8}))
    text = (files / "sweep.toml").read_text().replace(str(files / "dflash"), str(folder))
    (tmp_path / "s.toml").write_text(text)
    made = plan.make(tmp_path / "s.toml", [files / "data"])
    (tmp_path / "honest").mkdir()
    (header,) = Run(tmp_path / "honest", files, made, desk).launch()
    assert (header.outcome, header.reason) == ("ok", "")
    assert header.attestation["window"] == 8
    fake(dflash={"attests": {"window": 16, "drafted": 15}})
    (tmp_path / "liar").mkdir()
    (lied,) = Run(tmp_path / "liar", files, made, desk).launch()
    assert lied.outcome == "not_attested"
    assert "window: wanted 8, server says 16" in lied.reason

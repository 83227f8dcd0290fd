"""The small parts: wire, environment, warm-up, equality, processes."""

import json
import subprocess
import sys
import time
from types import SimpleNamespace

import pandas as pd
import pytest

from harness.measure import run as runner
from harness.measure.run import exit_code
from harness.measure.warmup import spread
from harness.schema.failure import Failure
from harness.serve.environment import redact, redact_env
from harness.serve.processes import Leader, end_leftovers, remember
from harness.serve.responses import Answer, ServerInfo
from harness.stats.greedy_match import equalities
from sglang_specbench.errors import UserError
from tests.harness.made import cell

META = {
    "finish_reason": {"type": "length", "length": 8},
    "prompt_tokens": 4,
    "completion_tokens": 8,
    "cached_tokens": 0,
    "num_retractions": 0,
    "first_token_latency": 0.25,
    "spec_verify_ct": 3,
    "spec_num_correct_drafts": 5,
    "spec_correct_drafts_histogram": [1, 0, 1, 1],
}


def test_an_answer_is_read_as_sglang_writes_it():
    answer = Answer.parse({"text": "t", "output_ids": [1, 2], "meta_info": META})
    assert (answer.finish, answer.verify_ct, answer.histogram, answer.first_token_s) == (
        "length",
        3,
        (1, 0, 1, 1),
        0.25,
    )
    assert answer.cap_histogram is None


@pytest.mark.parametrize("key", ["finish_reason", "completion_tokens", "num_retractions"])
def test_an_answer_without_a_field_is_invalid_and_names_it(key):
    meta = {k: v for k, v in META.items() if k != key}
    with pytest.raises(Failure, match=key) as caught:
        Answer.parse({"text": "t", "output_ids": [], "meta_info": meta})
    assert caught.value.outcome == "invalid"


def test_server_info_takes_downgrades_of_every_rank():
    states = [{"specbench": {"downgrades": ["a"], "verification": "exact"}}, {"specbench": {"downgrades": ["b"]}}, {}]
    info = ServerInfo.parse({"served_model_name": "n", "version": "0.5.23", "internal_states": states})
    assert (info.downgrades, info.verification, info.attestation) == (("a", "b"), "exact", None)


def test_secrets_are_not_written_down_and_token_counts_are():
    argv = (
        "--api-key",
        "hush",
        "--admin-api-key=hush",
        "--max-total-tokens",
        "8",
        "--speculative-num-draft-tokens",
        "16",
    )
    assert redact(argv) == ("--api-key", "***", "--admin-api-key=***", *argv[3:])
    assert redact_env({"HF_TOKEN": "hush", "TOKENIZERS_PARALLELISM": "false"}) == {
        "HF_TOKEN": "***",
        "TOKENIZERS_PARALLELISM": "false",
    }


def test_the_home_folder_is_not_written_down(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert redact(["--model-path", "/home/ada/models/x"]) == ("--model-path", "~/models/x")


def test_warm_up_spreads_over_the_lengths_and_takes_the_longest():
    prompts = [(0,) * n for n in (5, 1, 9, 3)]
    assert [len(p) for p in spread(prompts, 2)] == [3, 9]
    assert [len(p) for p in spread(prompts, 8)] == [1, 1, 3, 3, 5, 5, 9, 9]
    assert [len(p) for p in spread(prompts[:1], 3)] == [5, 5, 5]


def _frames(outputs, dtype="float32"):
    """(arm, replica) -> output hashes of prompts p0, p1, ..."""
    cells, rows = [], []
    for i, ((arm, replica), hashes) in enumerate(outputs.items()):
        of = cell(target="m", prompt_set="s", dtype=dtype, arm=arm, replica=replica, prompts=len(hashes))
        cells.append({**vars(of), "cell": str(i), "outcome": "ok"})
        rows += [{"cell": str(i), "prompt_id": f"p{k}", "turn": 0, "output_hash": h} for k, h in enumerate(hashes)]
    return pd.DataFrame(cells), pd.DataFrame(rows)


@pytest.mark.parametrize(("dtype", "broken"), [("float32", True), ("bfloat16", False)])
def test_unequal_outputs_break_a_float32_run_only(dtype, broken):
    outputs = {("ar", 0): "ab", ("dflash", 0): "ac", ("lilicorr", 0): "ab", ("ar", 1): "ab"}
    found = {(e.arm, e.equal, e.compared): e for e in equalities(*_frames(outputs, dtype))}
    assert set(found) == {("dflash", 1, 2), ("lilicorr", 2, 2), ("ar", 2, 2)}
    dflash = found["dflash", 1, 2]
    assert dflash.broken is broken
    assert str(dflash) == "m/dflash s c=1 r0: 1 of 2 greedy outputs equal AR's; the first that differs is of prompt p1"
    assert not found["lilicorr", 2, 2].broken


def test_without_ar_nothing_is_compared():
    assert list(equalities(*_frames({("dflash", 0): "ab"}))) == []


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((), 0),
        (("ok", "ok"), 0),
        (("ok", "server_died"), 1),
        (("server_died", "oom", "timeout"), 5),
        (("server_died", "not_attested"), 1),
        (("missing_set",), 1),
    ],
)
def test_exit_codes(outcomes, code):
    assert exit_code(outcomes) == code


@pytest.fixture
def session_of_two():
    """A leader and a child in a process group of its own, in one session."""
    code = "import subprocess, sys; subprocess.Popen(['sleep', '600'], process_group=0); print(flush=True); "
    code += "sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    leader = Leader.of(process.pid)
    yield process, leader
    leader.end()
    process.communicate()


def test_what_a_killed_leader_leaves_is_ended(session_of_two, tmp_path):
    process, leader = session_of_two
    remember(tmp_path, leader)
    assert len(leader.members()) == 2
    process.kill()
    process.wait()
    (orphan,) = leader.members()
    assert end_leftovers(tmp_path) == [orphan]
    assert leader.members() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("changed", [{"start": 1}, {"boot": "another"}])
def test_a_recycled_pid_is_nobody_of_ours(session_of_two, tmp_path, changed):
    process, leader = session_of_two
    record = remember(tmp_path, leader)
    record.write_text(json.dumps({**json.loads(record.read_text()), **changed}))
    assert end_leftovers(tmp_path) == []
    assert len(leader.members()) == 2
    assert process.poll() is None


def test_a_half_written_record_is_dropped(tmp_path):
    (tmp_path / "1.json").write_text("{")
    assert end_leftovers(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_zombies_do_not_count(session_of_two):
    process, leader = session_of_two
    process.kill()
    time.sleep(0.2)  # ended, not yet waited for
    assert process.pid not in leader.members()


def test_a_server_that_serves_none_of_the_cells_says_why_and_what_to_start(run, monkeypatch):
    info = ServerInfo(served_name="x", sglang_version="0.5.23", attestation={"seed": 1}, downgrades=(), verification="")
    monkeypatch.setattr(runner, "Elsewhere", lambda _: SimpleNamespace(info=lambda: info))
    wanted = {cell.id: cell for cell in run.plan.launches[0].cells}
    with pytest.raises(UserError, match=r"x:1: it serves none .*seed.*start the server of one of the sweep's"):
        runner.served_by("x:1", run.plan, wanted)

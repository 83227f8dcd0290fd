"""The three commands of planning, as a user sees them: what they print, how they end, and that they write nothing."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
import typer

from harness.commands import plan as plan_command
from harness.commands.status import eta
from harness.store import run as store
from harness.sweep import plan
from sglang_specbench.errors import UserError
from tests.harness.made import header, row, sweep_text, toy


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "s.toml").write_text(sweep_text(toy(tmp_path), arms=("ar", "dflash"), concurrency=[1, 2]))
    return tmp_path


def specbench(*args):
    code = "from sglang_specbench.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True)


def files(folder):
    return {p for p in folder.rglob("*") if p.is_file()}


def test_plan_counts_and_writes_nothing(here):
    before = files(here)
    done = specbench("plan", "s.toml")
    assert done.returncode == 0, done.stderr
    assert "t: 6 cells in 3 server launches, 1 allocation; about 24 prompts to answer" in done.stdout
    assert "toy-s42-r0" in done.stdout
    assert "ar dflash/argmax ar" in done.stdout
    assert files(here) == before


def test_plan_notes_arms_without_ar_and_drafters_without_an_arm(here):
    assert "note" not in specbench("plan", "s.toml").stdout
    (here / "s.toml").write_text(sweep_text(toy(here, ("dflash", "lilicorr")), ("dflash",), ("dflash", "lilicorr")))
    done = specbench("plan", "s.toml")
    assert done.returncode == 0
    assert "t: 1 cell in 1 server launch, 1 allocation; about 4 prompts to answer" in done.stdout
    assert 's.toml: no arm "ar" beside dflash: speedups will be missing (add "ar" to the panel)' in done.stdout
    assert "s.toml: target.toy.drafters.lilicorr: no arm of a panel uses it" in done.stdout
    assert "note: s.toml: no arm" in specbench("run", "s.toml", "--dry-run").stdout


def test_plan_json_is_the_plan(here):
    made = json.loads(specbench("plan", "s.toml", "--json").stdout)
    assert made == json.loads(json.dumps(plan.make("s.toml")[1].to_json()))


def test_plan_names_missing_sets_and_models_with_their_commands(here):
    text = (here / "s.toml").read_text().replace("sets.mt-bench", "sets.alpaca").replace(f"{here}/target", "org/x")
    (here / "s.toml").write_text(text)
    done = specbench("plan", "s.toml")
    assert done.returncode == 0
    assert "specbench data fetch alpaca --accept-licence); 6 cells would be recorded as missing_set" in done.stdout
    assert "missing model: org/x (to get it: hf download org/x)" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("arms =", "arm =", ("s.toml: panel[0]: unknown key 'arm'", "did you mean 'arms'?")),
        ("/dflash", "/dflahs", ("s.toml: target.toy.drafters.dflash: ", "no folder", "check the path")),
        ("[1, 2]", "[1, -2]", ("concurrency -2 is not at least 1",)),
    ],
)
def test_a_mistake_is_one_line_exit_2_and_nothing_written(here, old, new, words):
    (here / "s.toml").write_text((here / "s.toml").read_text().replace(old, new))
    before = files(here)
    done = specbench("plan", "s.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in words), done.stderr
    assert files(here) == before


def test_status_tells_done_failed_and_missing(here):
    run = here / "run"
    (run / "logs").mkdir(parents=True)
    made = plan.make("s.toml")[1]
    plan.write(made, run)
    assert "6 planned, 0 done, 0 failed, 6 missing" in specbench("status", run).stdout
    now = datetime.now(UTC)
    launch = made.launches[0]
    log = run / "logs" / f"{launch.id}.log"
    log.write_text("boom")
    for i, cell in enumerate(made.cells[:4]):
        started = (now - timedelta(seconds=60 - 10 * i)).isoformat()
        store.write_cell(run, header(cell, started_at=started), [row()])
    failed = header(made.cells[4], outcome="oom", wall_s=None, reason="no memory", launch=launch.id)
    store.write_cell(run, failed, [])
    done = specbench("status", run)
    assert done.returncode == 1
    assert "6 planned, 4 done, 1 failed, 1 missing" in done.stdout
    assert f"oom: {made.cells[4].label}: no memory (log: {log})" in done.stdout
    assert "at the pace so far the rest takes 0:00:" in done.stdout
    summary = json.loads(specbench("status", run, "--json").stdout)
    assert summary["outcomes"] == {"ok": 4, "oom": 1}
    assert summary["missing"] == 1


def test_status_of_no_run(here):
    done = specbench("status", "nope")
    assert done.returncode == 2
    assert "nope/plan.json: no such file" in done.stderr


def test_eta_is_the_mean_pace():
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    started = [now - timedelta(minutes=m) for m in (10, 8, 6, 4, 2)]
    assert eta(started, now, 3) == timedelta(minutes=6)
    assert eta(started[:1], now, 3) is None
    assert eta(started, now, 0) is None


def test_data_lists_checks_and_asks_for_the_licence(here):
    listed = specbench("data", "list").stdout
    assert "gsm8k" in listed
    assert "1024 (EOS ignored)" in listed
    checked = specbench("data", "check", "mbpp")
    assert checked.returncode == 0
    assert "mbpp: 257 rows" in checked.stdout
    assert "note: 2 of 257 rows repeat" in checked.stdout
    asked = specbench("data", "fetch", "aime25")
    assert asked.returncode == 2
    assert "CC BY-NC-SA" in asked.stdout
    assert "--accept-licence" in asked.stderr
    assert not (here / "cache").exists()


def test_data_check_ends_with_1_for_a_refused_set(here):
    (here / "mbpp.jsonl").write_text('{"turns": ["a"]}\n')
    done = specbench("data", "check", "mbpp", "--data-dir", here)
    assert done.returncode == 1
    assert "REFUSED: 1 rows, not 257" in done.stdout


def answered(monkeypatch, stdout="", stderr="", code=0):
    """Stand in for the preflight process, which imports SGLang; returns what it was asked."""
    asked = []

    def run(command, input, **_):
        asked.extend(json.loads(input))
        return subprocess.CompletedProcess(command, code, stdout, stderr)

    monkeypatch.setattr(plan_command.subprocess, "run", run)
    return asked


def test_preflight_asks_once_per_server_and_prints_each_verdict(here, monkeypatch, capsys):
    verdicts = [{"arm": "ar", "proposal": "none", "ok": True}, {"arm": "dflash", "proposal": "argmax", "ok": True}]
    asked = answered(monkeypatch, "".join(json.dumps(v) + "\n" for v in verdicts))
    plan_command.plan("s.toml", preflight=True)
    assert [(a["arm"], a["draft"]) for a in asked] == [("ar", None), ("dflash", f"{here}/dflash")]
    assert "preflight dflash/argmax: ok" in capsys.readouterr().out


def test_a_refused_launch_ends_preflight_with_2(here, monkeypatch, capsys):
    verdict = {"arm": "dflash", "proposal": "argmax", "ok": False, "reasons": ["block size\n16 is not 8"]}
    answered(monkeypatch, json.dumps(verdict))
    with pytest.raises(typer.Exit) as ended:
        plan_command.plan("s.toml", preflight=True)
    assert ended.value.exit_code == 2
    assert "preflight dflash/argmax: block size 16 is not 8" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"stdout": '{"reasons": ["No module named \'sglang\'"]}'}, "needs SGLang .*sglang-specbench.serve"),
        ({"stderr": "Traceback\nValueError: x", "code": 1}, "preflight failed: ValueError: x"),
    ],
)
def test_a_preflight_that_cannot_run_says_why(here, monkeypatch, answer, message):
    answered(monkeypatch, **answer)
    with pytest.raises(UserError, match=message):
        plan_command.plan("s.toml", preflight=True)

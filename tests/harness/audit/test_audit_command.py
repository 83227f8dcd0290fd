"""What `specbench audit` refuses before it starts anything, what it audits, and how it ends."""

import pytest
import typer

from harness.audit import audit as session
from harness.audit import subjects
from harness.audit.certificate import Seeds
from harness.commands.audit import audit
from harness.schema.failure import Failure
from harness.sweep.sweep import load
from sglang_specbench.arms import get_arm
from sglang_specbench.errors import UserError
from tests.harness.audit.test_certificate import made

SWEEP = """
name = "two"
[target.small]
path = "."
drafters = { lilicorr = ".", dspark = "." }
[server]
device = "cpu"
[[panel]]
arms = ["ar", "lilicorr"]
[panel.sets.mini]
prompts = 2
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.toml").write_text(SWEEP)
    (tmp_path / "config.json").write_text('{"vocab_size": 64}')
    (tmp_path / "model.safetensors").write_bytes(b"0")
    return "two.toml"


def test_a_running_server_needs_its_target_and_one_arm(sweep, tmp_path):
    with pytest.raises(UserError, match="go together"):
        audit(
            sweep,
            arm=["lilicorr"],
            server="http://x",
            target_server="",
            samples=200,
            out=tmp_path,
            prompt_set="",
            again=False,
        )


@pytest.mark.parametrize(("samples", "words"), [(3000, "note: --samples 3,000 may end inconclusive"), (4000, "")])
def test_few_samples_are_noted_before_anything_is_served(sweep, tmp_path, capsys, monkeypatch, samples, words):
    class Reached(Exception):
        pass

    def reached(*_, **__):
        raise Reached

    monkeypatch.setattr(subjects, "subject", reached)
    options = {"arm": ["lilicorr"], "server": "", "target_server": "", "prompt_set": "", "again": False}
    with pytest.raises(Reached):
        audit(sweep, samples=samples, out=tmp_path, **options)
    said = capsys.readouterr().out
    assert said.startswith(words)
    assert bool(said) == bool(words)


def test_too_few_samples_for_any_target_are_refused(sweep, tmp_path, monkeypatch):
    recorder = Recorder(monkeypatch)
    with pytest.raises(UserError, match=r"audit: --samples 200 cannot show a bias of .* .give at least \d{3}, or"):
        run(sweep, tmp_path, ["lilicorr"], samples=200)
    assert recorder.asked == []


def test_by_default_every_arm_with_a_checkpoint_that_this_device_runs(sweep):
    assert list(subjects.arms(load(sweep), "small", [], "cpu")) == [
        "ar", "dspark", "dspark-argmax", "lilicorr", "lilicorr-argmax", "lilicorr-exact",
    ]  # fmt: skip
    assert "dspark-scheduled" not in subjects.arms(load(sweep), "small", [], "cuda")  # nothing supplies its table


@pytest.mark.parametrize(
    ("wanted", "message"), [("lilicor", "did you mean 'lilicorr'"), ("dflash2", "no 'dflash2', which dflash2 needs")]
)
def test_an_arm_that_cannot_be_audited(sweep, wanted, message):
    with pytest.raises(UserError, match=message):
        subjects.arms(load(sweep), "small", [wanted], "cpu")


def test_an_arm_that_nothing_can_supply(sweep):
    with pytest.raises(UserError, match="dspark-scheduled is not wired: needs a profiled SPS table"):
        subjects.arms(load(sweep), "small", ["dspark-scheduled"], "cpu")


def test_draws_that_every_request_shares_are_refused(sweep, tmp_path):
    (tmp_path / "same.toml").write_text(
        SWEEP.replace("[server]", '[server]\nargs = ["--enable-deterministic-inference"]')
    )
    with pytest.raises(UserError, match=r"same\.toml: server\.args: --enable-deterministic-inference"):
        subjects.subject(load("same.toml"), "small", subjects.here(tmp_path), "mini", remote=False)


def test_the_launch_is_the_targets_own_on_this_device(sweep):
    subject = subjects.subject(load(sweep), "small", subjects.elsewhere("http://a", "http://t"), "mini", remote=True)
    assert (subject.vocabulary, subject.launch.dtype, subject.launch.device) == (64, "float32", "cpu")
    assert subject.serve(subject.launch).url == "http://t"
    assert subject.serve(subject.arm("lilicorr", subject.target, 42)).url == "http://a"


class Recorder:
    """Stands in for the servers: `session.reference` and `session.audit`, with a verdict of its own for each arm."""

    def __init__(self, monkeypatch, **outcomes):
        self.outcomes, self.asked = outcomes, []
        monkeypatch.setattr(session, "reference", lambda *_: "the reference")
        monkeypatch.setattr(session, "audit", self.audit)
        monkeypatch.setattr(subjects, "prompt_ids", lambda _: ({"a": (1, 2)}, 0))

    def audit(self, subject, arm, draft, known, design):
        self.asked.append(arm)
        outcome = self.outcomes.get(arm.replace("-", "_"), "pass")
        if isinstance(outcome, BaseException):
            raise outcome
        return made(
            arm=arm, proposal=get_arm(arm).proposal(1), target_digest=subject.target.digest,
            draft_digest=draft.digest if draft else "", versions=session.VERSIONS,
            tested=20 if outcome == "inconclusive" else 2000,
            seeds=Seeds(repeats=outcome != "fail", differs=True),
        )  # fmt: skip


def run(sweep, tmp_path, arms, **options):
    defaults = {"prompt_set": "", "server": "", "target_server": "", "again": False, "samples": 1600}
    with pytest.raises(typer.Exit) as left:
        audit(sweep, arm=arms, out=tmp_path / "out", **{**defaults, **options})
    return left.value.exit_code


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ("pass", 0),
        ("inconclusive", 3),
        ("fail", 1),
        (session.NotAttested("verification is greedy"), 4),
        (Failure("server_died", "it is gone"), 5),
    ],
)
def test_the_exit_code_is_the_worst_verdicts(sweep, tmp_path, monkeypatch, capsys, outcome, code):
    recorder = Recorder(monkeypatch, dspark=outcome)
    assert run(sweep, tmp_path, ["lilicorr", "dspark"]) == code
    assert recorder.asked == ["lilicorr", "dspark"]
    printed = capsys.readouterr().out
    assert "small/lilicorr: pass" in printed
    assert str(outcome) in printed


def test_what_has_passed_is_not_asked_again(sweep, tmp_path, monkeypatch):
    recorder = Recorder(monkeypatch, dspark="inconclusive")
    run(sweep, tmp_path, ["lilicorr", "dspark"])
    assert run(sweep, tmp_path, ["lilicorr", "dspark"]) == 3
    assert recorder.asked == ["lilicorr", "dspark", "dspark"]
    run(sweep, tmp_path, ["lilicorr"], again=True)
    run(sweep, tmp_path, ["lilicorr"], samples=200_000)  # the certificate has 4,000
    assert recorder.asked[3:] == ["lilicorr", "lilicorr"]
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    run(sweep, tmp_path, ["lilicorr"])
    assert recorder.asked[5:] == ["lilicorr"]


def test_a_stopped_audit_keeps_what_it_has(sweep, tmp_path, monkeypatch, capsys):
    recorder = Recorder(monkeypatch, dspark=KeyboardInterrupt())
    assert run(sweep, tmp_path, ["lilicorr", "dspark"]) == 130
    assert "run the same command to go on" in capsys.readouterr().out
    assert run(sweep, tmp_path, ["lilicorr", "lilicorr-exact"]) == 0
    assert recorder.asked == ["lilicorr", "dspark", "lilicorr-exact"]


def test_a_folder_that_cannot_be_written_is_found_before_the_work(sweep, tmp_path, monkeypatch):
    recorder = Recorder(monkeypatch)
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UserError, match="--out"):
        run(sweep, tmp_path, ["lilicorr"])
    assert recorder.asked == []


def test_prompts_that_are_too_long_are_counted(monkeypatch):
    """They were left out without a word."""
    from types import SimpleNamespace

    lengths = {f"p{i}": 10 if i % 3 else 10_000 for i in range(6)}
    known = SimpleNamespace(prompts=[SimpleNamespace(id=name) for name in lengths])
    monkeypatch.setattr(subjects.prompts, "load", lambda _: known)
    monkeypatch.setattr(subjects, "messages", lambda prompt: prompt.id)
    monkeypatch.setattr(subjects, "Renderer", lambda _: SimpleNamespace(render=lambda name: [1] * lengths[name]))
    subject = SimpleNamespace(
        prompt_set="s", target=SimpleNamespace(path="."), launch=SimpleNamespace(context_length=1024)
    )
    ids, skipped = subjects.prompt_ids(subject)
    assert (sorted(ids), skipped) == (["p1", "p2", "p4", "p5"], 2)

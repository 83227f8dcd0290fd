"""The steps of our workflows and of the composite action, read from the YAML and run on stand-in runs.

Only what needs the network, a server or ten gigabytes is stood in for: `make`, `pip` and `specbench run`. Every other
command of a step is the real one, in a folder that looks like a checkout.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness.gate import baseline, history
from tests import synthetic_run as synthetic

ROOT = Path(__file__).resolve().parent.parent
INPUTS = {
    "sweep": "demo",
    "baseline": "results/baseline.json",
    "extra": "serve",
    "budget-minutes": "1",
    "metric": "both",
}
SPECBENCH = """#!{python}
import shutil, sys
if sys.argv[1] == "run":
    shutil.copytree({candidate!r}, sys.argv[sys.argv.index("--out") + 1])
else:
    from sglang_specbench.cli import main
    main()
"""
MAKE = """#!/bin/sh
if [ "$1" = demo ]; then .venv/bin/specbench run demo --out out/demo; fi
"""


def run_of(folder, chance=None):
    """A run with A/A repeats whose LiLiCorr accepts a slot with ``chance``."""
    usual = dict(synthetic.CHANCE)
    try:
        if chance:
            synthetic.CHANCE["lilicorr"] = chance
        cells = [
            synthetic.cell("mini", arm, "mini", prompts=60, repeat=r)
            for arm in ("ar", "dflash", "lilicorr") for r in range(4)
        ]  # fmt: skip
        return synthetic.write(folder, synthetic.run(cells))
    finally:
        synthetic.CHANCE.update(usual)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {"usual": run_of(folder / "usual"), "worse": run_of(folder / "worse", 0.70)}


@pytest.fixture
def checkout(tmp_path, runs):
    """A folder with an accepted baseline; ``checkout(candidate)`` puts the commands into it."""
    shutil.copytree(runs["usual"], tmp_path / "results" / "demo")
    baseline.accept(tmp_path / "results" / "baseline.json", tmp_path / "results" / "demo", "the first")
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "origin.git")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "remote", "add", "origin", "origin.git")
    git(tmp_path, "add", "results")
    git(tmp_path, "commit", "-qm", "a baseline")
    git(tmp_path, "push", "-q", "origin", "main")

    def with_candidate(name):
        texts = {
            ".venv/bin/specbench": SPECBENCH.format(python=sys.executable, candidate=str(runs[name])),
            "bin/make": MAKE,
            "bin/python": "#!/bin/sh\n",
        }
        for place, text in texts.items():
            path = tmp_path / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        shutil.copy(tmp_path / ".venv/bin/specbench", tmp_path / "bin/specbench")
        return tmp_path

    return with_candidate


def git(folder, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def steps(file):
    """The ``run`` steps of a workflow's one job, or of a composite action."""
    text = yaml.safe_load((ROOT / ".github" / file).read_text())
    found = text["runs"]["steps"] if "runs" in text else next(iter(text["jobs"].values()))["steps"]
    return [step for step in found if "run" in step]


def filled(text):
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: INPUTS[m[1]], text)


def carry_out(file, folder):
    """Exit code of the first step that fails, 0 if none does; steps with ``if: always()`` run in any case."""
    code, exported = 0, folder / "exported"
    exported.touch()
    for step in steps(file):
        if code and step.get("if") != "always()":
            continue
        own = {k: filled(v) for k, v in step.get("env", {}).items()}
        env = {
            **os.environ,
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GITHUB_OUTPUT": str(folder / "outputs"),
            "GITHUB_ENV": str(exported),
            "GITHUB_REF_NAME": "main",
            "SWEEP": "demo",
            **dict(line.split("=", 1) for line in exported.read_text().splitlines()),
            **own,
        }
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", filled(step["run"])], cwd=folder, env=env, capture_output=True, text=True
        )
        assert "Traceback" not in done.stderr, done.stderr
        code = code or done.returncode
    return code


FILES = ("workflows/smoke.yml", "workflows/nightly.yml", "actions/gate/action.yml")


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(("candidate", "code"), [("usual", 0), ("worse", 1)])
def test_the_steps_pass_a_usual_run_and_fail_a_worse_drafter(checkout, file, candidate, code):
    folder = checkout(candidate)
    assert carry_out(file, folder) == code
    summary = (folder / "summary.md").read_text()
    assert ("REGRESSION" in summary) == bool(code)
    if code:
        assert "| lilicorr | tau |" in summary
    if "nightly" in file:
        git(folder, "clone", "-q", "origin.git", "tomorrow")  # what the next night reads
        (entry,) = history.read(folder / "tomorrow/results/history.jsonl")
        assert entry.verdict == ("regression" if code else "ok")
        assert (folder / "site/index.html").is_file()


@pytest.mark.slow
def test_the_next_night_adds_a_line_beside_what_others_have_pushed(checkout):
    folder = checkout("usual")
    assert carry_out("workflows/nightly.yml", folder) == 0
    git(folder, "clone", "-q", "origin.git", "tomorrow")
    (folder / "tomorrow" / "other").touch()
    git(folder / "tomorrow", "add", "other")
    git(folder / "tomorrow", "commit", "-qm", "somebody else's")
    git(folder / "tomorrow", "push", "-q", "origin", "main")
    shutil.rmtree(next((folder / "results/runs").iterdir()))
    assert carry_out("workflows/nightly.yml", folder) == 0
    git(folder / "tomorrow", "pull", "-q", "origin", "main")
    assert [e.verdict for e in history.read(folder / "tomorrow/results/history.jsonl")] == ["ok", "ok"]


def test_there_is_nothing_to_fill_in_but_the_sweep():
    for file in FILES:
        text = (ROOT / ".github" / file).read_text()
        assert not re.search(r"TODO|CHANGEME|YOUR_|<[A-Z]+>", text)
    nightly = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())
    assert nightly["jobs"]["nightly"]["env"] == {"SWEEP": "paper_head_cost"}


@pytest.mark.slow
def test_make_results_keeps_the_run_its_baseline_and_a_line_of_history(checkout):
    """The real Makefile, on a stand-in for a finished demo."""
    folder = checkout("usual")
    (folder / "out").mkdir()
    shutil.move(folder / "results" / "demo", folder / "out" / "demo")
    shutil.rmtree(folder / "results")
    (folder / "out" / "demo" / "report.md").write_text("the report")
    command = [shutil.which("make") or "make", "-f", str(ROOT / "Makefile"), "results"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    accepted, run = baseline.load(folder / "results" / "baseline.json")
    assert (accepted.run, run.name) == ("demo", "demo")
    (entry,) = history.read(folder / "results" / "history.jsonl")
    assert (entry.run, entry.verdict) == ("demo", "ok")
    assert (folder / "results/demo/report.md").read_text() == "the report"
    assert {p.suffix for p in (folder / "results/demo/figures").iterdir()} == {".svg"}

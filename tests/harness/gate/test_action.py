"""The composite action's script, run by bash with a stand-in for ``specbench``: whose exit code does the step have."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ACTION = Path(__file__).resolve().parents[3] / ".github" / "actions" / "gate" / "action.yml"


@pytest.mark.parametrize(
    ("ran", "judged", "wanted"),
    [(0, 0, 0), (0, 1, 1), (0, 3, 3), (1, 0, 1), (1, 4, 4), (5, 0, 5), (5, 3, 5), (5, 2, 5), (130, 0, 130), (2, 2, 2)],
)
def test_the_runs_exit_code_is_not_hidden(tmp_path, ran, judged, wanted):
    """``run`` that ended with 5 and a gate that found nothing wrong in what was there made the step green."""
    fake = tmp_path / "specbench"
    fake.write_text(f'#!/bin/sh\n[ "$1" = run ] && exit {ran}\nexit {judged}\n')
    fake.chmod(0o755)
    step = next(s for s in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if s.get("id") == "gate")
    files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    inputs = {"SWEEP": "demo", "BASELINE": "b.json", "BUDGET": "1", "METRIC": "tau"}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # as GitHub starts it
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **files, **inputs},
        check=False,
    )
    assert done.returncode == wanted
    assert (tmp_path / "output").read_text().split() == [f"run-exit-code={ran}", f"gate-exit-code={judged}"]

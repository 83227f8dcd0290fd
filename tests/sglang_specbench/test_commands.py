"""``specbench arms`` and ``specbench doctor`` on machines that have more or less."""

import dataclasses
import json
import subprocess
import sys

import pytest
import typer

from sglang_specbench import commands
from sglang_specbench.arms import ARMS
from sglang_specbench.machine import Machine, inspect_machine, why_not

FIT = Machine(
    python="3.11",
    platform="Linux",
    versions={"sglang": "0.5.23"},
    locations={},
    plugin="sglang_specbench.plugin:register",
    gpus=("NVIDIA H100, 80 GiB, 570",),
    cpu_flags=(),
    cores=2,
    free_disk_gb=100,
)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch):
    def choose(machine: Machine) -> None:
        monkeypatch.setattr(commands, "inspect_machine", lambda: machine)

    return choose


def test_a_gpu_runs_all_that_is_wired_and_the_controls_need_one() -> None:
    cpu = dataclasses.replace(FIT, gpus=())
    assert [arm.name for arm in ARMS.values() if why_not(arm, FIT)] == ["standalone", "dspark-scheduled"]
    assert {arm.name for arm in ARMS.values() if why_not(arm, cpu)} == {
        "eagle3",
        "ngram",
        "standalone",
        "dspark-scheduled",
    }


def test_arms_as_json_says_why_not(on, capsys: pytest.CaptureFixture[str]) -> None:
    on(dataclasses.replace(FIT, problems=("SGLang is not installed: pip install x",)))
    commands.arms(as_json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(ARMS)
    assert all("not installed" in row["why_not"] for row in rows)


@pytest.mark.parametrize("name", [None, *ARMS])
def test_arms_for_people(name: str | None, on, capsys: pytest.CaptureFixture[str]) -> None:
    on(FIT)
    commands.arms(name)
    out = capsys.readouterr().out
    assert all(arm in out for arm in (ARMS if name is None else [name]))


def test_doctor_exit_code_and_remedy(on, capsys: pytest.CaptureFixture[str]) -> None:
    for machine, code in ((FIT, 0), (dataclasses.replace(FIT, problems=("no sglang",)), 1)):
        on(machine)
        with pytest.raises(typer.Exit) as left:
            commands.doctor()
        assert left.value.exit_code == code
    assert "not fit for serving: no sglang" in capsys.readouterr().out


def test_doctor_says_once_what_to_install(on, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sglang_specbench.machine._version", lambda name: None)
    on(inspect_machine())
    with pytest.raises(typer.Exit):
        commands.doctor()
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("pip install") == 1
    assert "work without it" in out


_LIGHT = """
import sys, typer
from sglang_specbench import commands
commands.arms()
try:
    commands.doctor()
except typer.Exit:
    pass
assert not {"torch", "sglang", "transformers"} & set(sys.modules)
"""


def test_both_commands_need_the_base_alone() -> None:
    done = subprocess.run([sys.executable, "-c", _LIGHT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_inspection_names_another_sglang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sglang_specbench.machine._version", lambda name: "0.5.20" if name == "sglang" else None)
    problems = inspect_machine().problems
    assert any("0.5.20 is not 0.5.23" in problem for problem in problems)


@pytest.mark.parametrize("name", ["dspark-scheduled", "standalone"])
def test_an_arm_that_nothing_can_supply_is_not_called_runnable(name: str) -> None:
    assert why_not(ARMS[name], dataclasses.replace(FIT, gpus=("NVIDIA H100",))).startswith("not wired: needs a ")

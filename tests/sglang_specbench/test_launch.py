"""The command line and environment of a server, and the configuration that reaches the plugin."""

import json
from collections.abc import Callable

import pytest

from sglang_specbench.errors import UserError
from sglang_specbench.launch import STAND_IN, Launch, ServerConfig, graph_sizes, own_variables


def launch(**changes: object) -> Launch:
    values: dict[str, object] = {
        "arm": "lilicorr", "proposal": "sampled", "target": "T", "draft": "D", "port": 1, "seed": 42, "concurrency": 6,
    }  # fmt: skip
    return Launch(**{**values, **changes})  # type: ignore[arg-type]


def written(subject: Launch) -> str:
    env = {k: v.replace(str(STAND_IN), "STAND_IN") for k, v in subject.env.items()}
    return "\n".join([*subject.argv, "", *(f"{k}={v}" for k, v in sorted(env.items())), ""])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("arm", "proposal", "draft"),
    [("ar", "none", None), ("lilicorr", "sampled", "D"), ("dspark", "argmax", "D"), ("domino-full", "argmax", "D")],
)
def test_argv_and_env(
    device: str, arm: str, proposal: str, draft: str | None, golden: Callable[[str, str], None]
) -> None:
    dtype = "float32" if device == "cpu" else "bfloat16"
    subject = launch(arm=arm, proposal=proposal, draft=draft, device=device, dtype=dtype)
    golden(f"launch-{arm}-{proposal}-{device}.txt", written(subject))


def test_sweep_arguments_come_last_so_that_they_win() -> None:
    assert launch(extra=("--mem-fraction-static", "0.5")).argv[-2:] == ("--mem-fraction-static", "0.5")


@pytest.mark.parametrize(
    ("concurrency", "sizes"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (32, (1, 2, 4, 8, 16, 32))]
)
def test_graphs_are_captured_up_to_the_concurrency(concurrency: int, sizes: tuple[int, ...]) -> None:
    assert graph_sizes(concurrency) == sizes


def test_a_python_path_of_the_caller_stays_behind_the_stand_in() -> None:
    merged = launch(device="cpu").environment({"PYTHONPATH": "/theirs", "HOME": "/h"})
    assert merged["PYTHONPATH"] == f"{STAND_IN}:/theirs"
    assert merged["HOME"] == "/h"
    assert "PYTHONPATH" not in launch(device="cuda").env


def test_variables_of_the_sweep_stand_in_front_of_its_arguments_and_reach_the_process() -> None:
    subject = launch(device="cpu", extra=("PYTHONPATH=mine", "SGLANG_X=a=b", "--tp-size", "2", "Y=1"))
    assert subject.argv[-3:] == ("--tp-size", "2", "Y=1")
    assert subject.env["SGLANG_X"] == "a=b"
    assert subject.environment({"PYTHONPATH": "/theirs"})["PYTHONPATH"] == f"{STAND_IN}:mine:/theirs"


def test_what_a_launch_sets_is_not_the_sweeps_to_set() -> None:
    for device in ("cpu", "cuda"):
        assert set(launch(device=device).env) - {"PYTHONPATH"} <= own_variables()
    assert "SGLANG_DSPARK_USE_GREEDY_DRAFT" in own_variables()


def test_config_survives_the_environment() -> None:
    config = launch(draft=None, arm="ar", proposal="none").config
    assert ServerConfig.from_json(config.to_json()) == config


def test_a_misspelt_config_is_refused() -> None:
    text = json.dumps(json.loads(launch().config.to_json()) | {"propsal": "argmax"})
    with pytest.raises(UserError, match="did you mean 'proposal'"):
        ServerConfig.from_json(text)

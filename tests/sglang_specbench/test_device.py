"""One detector of GPUs, and what follows from the card."""

import os
from pathlib import Path

import pytest

from sglang_specbench import device, machine
from sglang_specbench.errors import UserError

TWO = "NVIDIA H100 80GB HBM3, 81559 MiB, 580.65, 9.0\\nNVIDIA B200, 183359 MiB, 580.65, 10.0\\n"


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``smi(output, code)`` puts a tool called nvidia-smi on the PATH."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def install(output: str, code: int = 0) -> None:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\nprintf '{output}'\nexit {code}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return install


def test_two_cards(smi) -> None:
    smi(TWO)
    assert [gpu.capability for gpu in device.gpus()] == [90, 100]
    assert device.detect_device() == "cuda"
    assert machine.inspect_machine().gpus == tuple(map(str, device.gpus()))


@pytest.mark.parametrize(
    ("output", "code"), [("No devices were found\\n", 0), ("NVIDIA-SMI has failed\\n", 9), ("", 0)]
)
def test_the_tool_without_a_device_is_no_gpu(smi, output: str, code: int) -> None:
    """plan used to say cuda here, and doctor "none"."""
    smi(output, code)
    assert device.detect_device() == "cpu"
    assert machine.inspect_machine().gpus == ()
    with pytest.raises(UserError, match="finds no GPU"):
        device.require("cuda")


@pytest.mark.parametrize(("visible", "found"), [("", 0), ("-1", 0), ("1", 1), ("0,1", 2), ("GPU-4f2", 1)])
def test_only_visible_devices_count(smi, monkeypatch, visible: str, found: int) -> None:
    smi(TWO)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert len(device.gpus()) == found


def test_fa3_only_where_sglang_allows_it() -> None:
    assert [device.attention_backend(n) for n in (75, 80, 89, 90, 100, 103, 120)] == [
        "flashinfer", "fa3", "fa3", "fa3", "flashinfer", "flashinfer", "flashinfer",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("NVIDIA H100, 81559 MiB, 570.86, 9.0", "driver 570.86 of NVIDIA H100 is older than 580"),
        ("Tesla V100, 32768 MiB, 580.65, 7.0", "Tesla V100 is sm_70"),
        ("NVIDIA B200, 183359 MiB, 580.65, 10.0", ""),
    ],
)
def test_a_card_or_driver_that_cannot_serve_is_named(smi, card: str, said: str) -> None:
    """Before minutes of loading, and by the command that says what runs here."""
    smi(f"{card}\\n{card}\\n")
    found = [problem for problem in machine.inspect_machine().problems if "sm_" in problem or "driver" in problem]
    assert [text for text in found if said and said in text] == found
    assert len(found) == bool(said)


def test_a_dtype_that_is_stated_holds_and_auto_follows_the_device() -> None:
    assert [device.dtype_on("cuda", asked) for asked in ("auto", "float16")] == ["bfloat16", "float16"]
    assert [device.dtype_on("cpu", asked) for asked in ("auto", "bfloat16")] == ["float32", "bfloat16"]

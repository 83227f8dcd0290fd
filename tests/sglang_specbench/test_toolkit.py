"""A toolkit that works is left alone; one that does not is replaced by pip's, if that works."""

import os
import sys
from pathlib import Path

import pytest

from sglang_specbench import toolkit


def made(root: Path, nvcc: str = "13.0", headers: int = 13000, lib: str = "lib64", so: str = "libcudart.so") -> Path:
    for name in ("bin", "include", "nvvm", lib):
        (root / name).mkdir(parents=True)
    tool = root / "bin/nvcc"
    tool.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {nvcc}, V{nvcc}.88'\n")
    tool.chmod(0o755)
    (root / "include/cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {headers}\n")
    (root / "include/curand.h").write_text("")
    (root / lib / so).write_text("")
    return root


@pytest.fixture
def pip_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip's packages, as pip lays them out: lib for lib64, libraries with a version."""
    made(tmp_path / "site/nvidia/cu13", lib="lib", so="libcudart.so.13")
    found = toolkit.prepare(tmp_path / "site", tmp_path / "cache")
    assert found is not None
    monkeypatch.setattr(toolkit, "prepare", lambda: found)
    return found


def test_pips_packages_become_a_toolkit(tmp_path: Path, pip_cache: Path) -> None:
    assert toolkit.faults(tmp_path / "site/nvidia/cu13") != []
    assert toolkit.faults(pip_cache) == []
    assert (pip_cache / "lib64/libcudart.so").resolve().name == "libcudart.so.13"


def test_a_toolkit_of_the_user_that_works_is_kept(tmp_path: Path, pip_cache: Path) -> None:
    own = str(made(tmp_path / "own"))
    assert toolkit.environment({"PATH": "/bin", "CUDA_HOME": own})["CUDA_HOME"] == own


def test_a_compiler_newer_than_its_headers_is_replaced(tmp_path: Path, pip_cache: Path) -> None:
    own = made(tmp_path / "own", nvcc="13.5")
    assert toolkit.faults(own) == [f"{own}: nvcc 13.5 against headers 13.0"]
    assert toolkit.environment({"PATH": "/bin", "CUDA_HOME": str(own)})["CUDA_HOME"] == str(pip_cache)


@pytest.mark.parametrize("name", ["include/curand.h", "lib64/libcudart.so", "bin/nvcc"])
def test_each_missing_part_is_named(tmp_path: Path, name: str) -> None:
    own = made(tmp_path / "own")
    (own / name).unlink()
    assert toolkit.faults(own) == [f"{own / name} is missing"]


def test_the_interpreters_folder_is_on_the_path(pip_cache: Path) -> None:
    """ninja lies there, also when the environment was not activated."""
    folder = str(Path(sys.executable).parent)
    once = toolkit.environment({"PATH": "/bin"})
    assert once["PATH"].split(os.pathsep) == [folder, "/bin"]
    assert toolkit.environment(once)["PATH"] == once["PATH"]


@pytest.mark.sglang
@pytest.mark.slow
def test_the_module_of_a_server_is_built_for_a_card_that_is_not_here() -> None:
    """By SGLang's own loader, with the toolkit that a server would get: nvcc, headers and ninja that agree."""
    if toolkit.prepare() is None:
        pytest.skip("pip's nvcc is not installed (extra serve)")
    assert toolkit.report(os.environ).endswith("CUDA 13.0")
    assert toolkit.build(os.environ, here=False) == "built"


def test_a_build_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "MODULE", "no_such_module")
    assert "no_such_module" in toolkit.build({"PATH": "/bin"}, here=True)

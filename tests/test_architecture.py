"""The shape of the tree: sibling folders, file sizes, what ships, what an import loads."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sglang_specbench.checkpoint_kind import block_drafters

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("sglang_specbench", "drafters", "harness", "plots")
HEAVY = ("torch", "sglang", "transformers", "pandas", "matplotlib")
DRAFTERS = sorted({name.removesuffix("-conv").removesuffix("-noconv") for name in block_drafters()})


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_every_drafter_folder_has_the_same_files(drafter):
    files = {p.name for p in (ROOT / "drafters" / drafter).iterdir() if p.name != "__pycache__"}
    assert files == {
        "__init__.py", "head.py", "loss.py", "tensors.py", "config_checks.py", "recipe.toml", "README.md",
    }  # fmt: skip


def rooms(package: str) -> set[str]:
    """The layers of the package's import contract, as pyproject.toml lists them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c.get("containers") == [package])
    return {room for layer in layers for room in layer.split(" | ")}


@pytest.mark.parametrize(("package", "loose"), [("harness", {"load_results"}), ("drafters", set())])
def test_a_package_is_its_rooms_and_nothing_lies_beside_them(package, loose):
    found = {p.stem for p in (ROOT / package).iterdir() if p.suffix == ".py" or p.is_dir()} - {
        "__init__",
        "__pycache__",
    }
    assert found == rooms(package)
    assert {p.stem for p in (ROOT / package).glob("*.py")} - {"__init__"} == loose


@pytest.mark.parametrize("package", ["harness", "drafters"])
def test_tests_mirror_the_rooms(package):
    folders = {p.name for p in (ROOT / "tests" / package).iterdir() if p.is_dir()} - {"__pycache__"}
    assert folders <= rooms(package)


def test_no_source_file_is_over_400_lines():
    sources = [p for package in PACKAGES for p in (ROOT / package).rglob("*.py")]
    assert sources
    assert {str(p.relative_to(ROOT)): n for p in sources if (n := len(p.read_text().splitlines())) > 400} == {}


def test_results_hold_no_python():
    assert list((ROOT / "results").rglob("*.py")) == []


def test_entry_points_and_the_command_list_agree():
    from sglang_specbench.cli import COMMANDS

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["entry-points"]["specbench.commands"]) == set(COMMANDS)


@pytest.mark.parametrize(
    "module",
    [
        "sglang_specbench.cli",
        "harness.schema.cell",
        "harness.sweep.plan",
        "harness.sweep.sweep",
        "sglang_specbench.plugin",
    ],
)
def test_light_modules_load_nothing_heavy(module):
    code = f"import sys, {module}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_architecture_page_lists_every_file_once():
    page = (ROOT / "docs" / "architecture.md").read_text()
    missing = [
        str(p.relative_to(ROOT))
        for package in PACKAGES
        for p in sorted((ROOT / package).rglob("*.py"))
        if p.name != "__init__.py" and f"`{p.relative_to(ROOT)}`" not in page
    ]
    assert missing == []

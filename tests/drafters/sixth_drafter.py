"""The packages with the sixth drafter of examples/ in them, as its page says to put it there."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "sixth_drafter"


def build(tree: Path) -> Path:
    """``tree``, with copies of the packages that the example changes; the mini models are a link."""
    ignored = shutil.ignore_patterns("mini", "__pycache__")
    for folder in ("sglang_specbench", "drafters", "examples"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignored)
    (tree / "drafters" / "mini").symlink_to(ROOT / "drafters" / "mini")
    shutil.copy(ROOT / "pyproject.toml", tree)
    shutil.copytree(EXAMPLE / "drafters" / "toy", tree / "drafters" / "toy", ignore=ignored)
    subprocess.run(["git", "apply", str(EXAMPLE / "arm.patch")], cwd=tree, check=True)
    return tree

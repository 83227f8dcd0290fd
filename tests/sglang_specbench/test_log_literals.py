"""Every text that we look for in a server's log stands in the installed SGLang; none of its fallbacks is overlooked.

A new release then breaks this test, and not the proof that a server gave.
"""

import ast
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sglang_specbench import capture
from sglang_specbench.arms import ARMS
from sglang_specbench.refused_log import REFUSED_LOG

pytestmark = pytest.mark.torch
FOLDERS = ("speculative", "arg_groups", "plugins", "managers", "model_executor/model_runner_components")
FILES = ("environ.py", "models/dflash.py", "models/lilicorr.py", "models/dspark.py", "utils/hf_transformers_utils.py")
DRAFTING = ("dflash", "dspark", "lilicorr")  # parts of the names of files that our arms run
# what a placeholder of a message may stand for
VALUES = (
    "X", "1", "True", "False", "greedy", "sampled", "greedy draft", "sampling", "2048", "0", "compact", "specbench",
    "SGLANG_X", "target verify", "target decode", "draft verify", "[1, 2]", "CUDA graph",
)  # fmt: skip
FALLBACK = re.compile(r"fall(s|ing)? back|eager|[Dd]isabl|mismatch|failed", re.IGNORECASE)
# Said by files of ours about paths that no launch of ours can reach, or that change nothing which is measured.
HARMLESS = (
    "Graph pool %s; disabling borrowing",  # only the size of the KV pool changes
    "DSpark SPS prediction:",  # statistics of the scheduler's profile
    "DSpark deferred context-KV commit:",  # statistics of an option that is off
)


def root() -> Path:
    spec = importlib.util.find_spec("sglang")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("SGLang is not installed")
    return Path(spec.submodule_search_locations[0]) / "srt"


@functools.cache
def messages() -> tuple[tuple[str, str], ...]:
    """(file, message) of every string handed to a logger or raised, with ``%s`` for what is filled in."""
    paths = [path for folder in FOLDERS for path in sorted((root() / folder).rglob("*.py"))]
    paths += [path for name in FILES if (path := root() / name).is_file()]
    return tuple((path.name, text) for path in paths for text in _texts(ast.parse(path.read_text())))


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for value in node.args:
                text = _text(value)
                if len(text) > 12:
                    yield text


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[.\d]*[sdfr]", "%s", node.value)
    if isinstance(node, ast.JoinedStr):
        parts = (v.value if isinstance(v, ast.Constant) else "%s" for v in node.values)
        return "".join(str(part) for part in parts)
    return ""


def printable(pattern: str) -> bool:
    """Can the installed SGLang print a line that ``pattern`` matches?"""
    return any(
        re.search(pattern, text.replace("%s", value)) or re.search(pattern, _mixed(text))
        for _, text in messages()
        for value in (VALUES if "%s" in text else ("",))
    )


def _mixed(text: str) -> str:
    """A capture line has a role, a kind of graph and sizes in it, in this order."""
    return text.replace("%s", "draft verify", 1).replace("%s", "CUDA graph", 1).replace("%s", "[1, 2]", 1)


def alternatives(pattern: str) -> list[str]:
    """A pattern with one ``(a|b)``, written out; each must be there."""
    found = re.search(r"\(((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\|(?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*)\)", pattern)
    if not found:
        return [pattern]
    options = re.split(r"\|(?![^(]*\))", found.group(1))
    return [text for o in options for text in alternatives(pattern[: found.start()] + o + pattern[found.end() :])]


@pytest.mark.parametrize("pattern", [text for rule in REFUSED_LOG for text in alternatives(rule.pattern)])
def test_a_refused_line_is_one_that_sglang_prints(pattern: str) -> None:
    assert printable(pattern)


@pytest.mark.parametrize("pattern", sorted({p for a in ARMS.values() for p in (*a.argmax_log, *a.sampled_log)}))
def test_a_proof_line_is_one_that_sglang_prints(pattern: str) -> None:
    assert printable(pattern)


def test_the_line_that_ends_a_capture_is_one_that_sglang_prints() -> None:
    assert printable(capture._ENDS.format(name="draft verify"))


def test_a_text_that_sglang_does_not_print_is_not_found() -> None:
    assert not printable(r"DFLASH fused KV initialization failed; falling back")


def test_no_fallback_of_the_drafters_is_overlooked() -> None:
    said = {
        text
        for file, text in messages()
        if any(part in file for part in DRAFTING) and FALLBACK.search(text) and _logged(text)
    }
    unknown = {
        text
        for text in said
        if not any(re.search(rule.pattern, text.replace("%s", "X")) for rule in REFUSED_LOG)
        and not any(text.startswith(start) for start in HARMLESS)
    }
    assert unknown == set()


@functools.cache
def _warned() -> frozenset[str]:
    found = set()
    for path in sorted((root() / "speculative").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("logger."):
                found |= {_text(value) for value in node.args}
    return frozenset(found)


def _logged(text: str) -> bool:
    return text in _warned()

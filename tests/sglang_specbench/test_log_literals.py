"""Every text that we look for in a server's log stands in the installed SGLang; none of its fallbacks is overlooked.

A new release then breaks this test, and not the proof that a server gave.
"""

import ast
import functools
import re
from pathlib import Path

import pytest

from sglang_specbench import capture, sglang_source
from sglang_specbench.arms import ARMS
from sglang_specbench.errors import UserError
from sglang_specbench.refused_log import REFUSED_LOG
from sglang_specbench.sglang_source import alternatives

pytestmark = pytest.mark.torch
DRAFTING = ("dflash", "dspark", "lilicorr")  # parts of the names of files that our arms run
FALLBACK = re.compile(r"fall(s|ing)? back|eager|[Dd]isabl|mismatch|failed", re.IGNORECASE)
# Said by files of ours about paths that no launch of ours can reach, or that change nothing which is measured.
HARMLESS = (
    "Graph pool %s; disabling borrowing",  # only the size of the KV pool changes
    "DSpark SPS prediction:",  # statistics of the scheduler's profile
    "DSpark deferred context-KV commit:",  # statistics of an option that is off
)


def root() -> Path:
    try:
        return sglang_source.installed()
    except UserError:
        pytest.skip("SGLang is not installed")


def printable(pattern: str) -> bool:
    return sglang_source.printable(root(), pattern)


@pytest.mark.parametrize("pattern", [text for rule in REFUSED_LOG for text in alternatives(rule.pattern)])
def test_a_refused_line_is_one_that_sglang_prints(pattern: str) -> None:
    assert printable(pattern)


@pytest.mark.parametrize("pattern", sorted({p for a in ARMS.values() for p in (*a.argmax_log, *a.sampled_log)}))
def test_a_proof_line_is_one_that_sglang_prints(pattern: str) -> None:
    assert printable(pattern)


def test_the_line_that_ends_a_capture_is_one_that_sglang_prints() -> None:
    assert printable(capture.END.format(name="draft verify"))


def test_a_text_that_sglang_does_not_print_is_not_found() -> None:
    assert not printable(r"DFLASH fused KV initialization failed; falling back")


def test_no_fallback_of_the_drafters_is_overlooked() -> None:
    said = {
        text
        for file, text in sglang_source.messages(root())
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
    for path in sorted((root() / "srt" / "speculative").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("logger."):
                found |= {sglang_source.message(value) for value in node.args}
    return frozenset(found)


def _logged(text: str) -> bool:
    return text in _warned()

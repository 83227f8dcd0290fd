"""Graphs that were captured, or were only promised."""

from typing import Any

import pytest

from sglang_specbench.arms import ARMS
from sglang_specbench.capture import asked_sizes, capture_faults

SIZES = (1, 2, 4)
SEEN = {
    "device": "cuda",
    "graph_sizes": [1, 2, 4],
    "draft_graph_sizes": [1, 2, 4],
    "head_captured": True,
}
LOG = (
    "INFO Capture target verify CUDA graph end. bs=[1, 2, 4], elapsed=1.00 s, mem usage=0.1 GB, avail mem=9 GB.\n"
    "INFO Capture draft verify CUDA graph end. bs=[1, 2, 4], elapsed=1.00 s, mem usage=0.1 GB, avail mem=9 GB.\n"
)


def faults(arm: str = "lilicorr", log: str | None = LOG, **changes: Any) -> list[str]:
    return capture_faults(SEEN | changes, ARMS[arm], sizes=SIZES, log=log)


def test_a_server_that_captured_what_was_asked_has_no_fault() -> None:
    assert faults() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("graph_sizes", [1, 2]), ("draft_graph_sizes", []), ("head_captured", False)],
)
def test_each_lie_is_named(field: str, value: object) -> None:
    (found,) = faults(**{field: value})
    assert found.startswith(f"{field}: wanted")


def test_a_promise_before_the_capture_is_no_proof() -> None:
    """SGLang prints this line before it captures, also when the capture then fails."""
    found = faults(log="LiLiCorr select folded into the draft cuda graph: max_bs=4 block_size=16 K=8.\n")
    assert [text.rpartition("; ")[2] for text in found] == ["it ended never"] * 2


def test_a_capture_of_other_sizes_is_named() -> None:
    (found,) = faults(
        log=LOG.replace("draft verify CUDA graph end. bs=[1, 2, 4]", "draft verify CUDA graph end. bs=[1]")
    )
    assert "draft verify" in found
    assert "[1]" in found


def test_ar_has_no_draft_graph() -> None:
    log = "Capture target decode CUDA graph end. bs=[1, 2, 4], elapsed=1 s"
    assert faults("ar", log, draft_graph_sizes=[], head_captured=False) == []


def test_a_cpu_has_no_graphs() -> None:
    assert capture_faults({"device": "cpu"}, ARMS["dspark"], sizes=SIZES, log="") == []


def test_the_sweeps_own_sizes_win() -> None:
    assert asked_sizes(6) == (1, 2, 4, 6)
    assert asked_sizes(6, ("--cuda-graph-bs-decode", "8", "3", "--tp", "2")) == (3, 8)

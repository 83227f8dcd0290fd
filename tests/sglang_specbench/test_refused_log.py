"""Lines that SGLang prints and that end a cell."""

import pytest

from sglang_specbench.arms import ARMS
from sglang_specbench.refused_log import check_log

LINES = {
    "DFLASH non-greedy verification is unavailable on this build/device; falling back to greedy argmax": True,
    "DFLASH draft greedy head kept eager (reason=added vocab).": False,
    "LiLiCorr sampled draft ran the eager head on a decode step (draft cuda graph unavailable for batch size 3": False,
    "Disable DFLASH draft cuda graph because only 0.42 GB GPU memory is available": True,
    "DFLASH fused KV append-by-loc failed; falling back to sequential path: boom": True,
    "DFLASH block size mismatch: using speculative_num_draft_tokens=16 but draft config block_size=8.": True,
    "DSpark gamma mismatch: using gamma=15 (from speculative_num_draft_tokens=16) but draft config block_size=7.": True,
    "speculative_num_draft_tokens is not set; defaulting to 16 for DFLASH.": True,
    "DFLASH draft worker does not support attention_backend 'x' on y. Falling back to 'flashinfer'.": True,
    "DSpark SPS table is uninitialized (flat): the verify budget degenerates to verify-all": True,
    'Invalid value for SGLANG_ENABLE_LILICORR_SAMPLING: yse, using default "False"': True,
    "Failed to execute general plugin: specbench": True,
    "Failed to load plugin specbench from group sglang.srt.plugins": True,
    "[2026-11-29] Scheduler hit an exception: Traceback": True,
}  # fmt: skip  # line -> refused on a CPU too


@pytest.mark.parametrize("line", LINES)
def test_line(line: str) -> None:
    text = f"INFO before\n[12:00:00] {line}\nINFO after\n"
    assert len(check_log(text, ARMS["ar"], "none", "cuda")) == 1
    assert bool(check_log(text, ARMS["ar"], "none", "cpu")) == LINES[line]


def test_a_quiet_log_passes() -> None:
    assert check_log("server_args={'a': 1}\nReady\n", ARMS["ar"], "none", "cuda") == []


def test_proof_lines_are_demanded_on_cuda_only() -> None:
    arm = ARMS["lilicorr"]
    proof = "LiLiCorr draft commit: sampled\nLiLiCorr select folded into the draft cuda graph: max_bs=32\n"
    assert check_log(proof, arm, "sampled", "cuda") == []
    assert "draft commit: greedy" in check_log(proof, arm, "argmax", "cuda")[0]
    assert check_log("", arm, "argmax", "cpu") == []

"""The table that a run ends with, from cells made by hand."""

import io

from rich.console import Console

from harness.load_results import load_run
from harness.schema.cell import Cell
from harness.schema.header import Header
from harness.schema.request import Row
from harness.store import run as store
from harness.tables.run_summary import report

ENVIRONMENT = {"device_name": "cpu", "attested": True}


def write(run_dir, arm, wall_s, outcome="ok", reason="", attested=True, output="same"):
    """One request of 8 tokens; drafted ones took three blocks that commit 0, 2 and 3 drafts."""
    cell = Cell(
        target="mini", target_digest="t", arm=arm, proposal="none" if arm == "ar" else "argmax", draft_digest="d",
        prompt_set="gsm8k", prompt_version="v1", temperature=0.0, seed=42, concurrency=1, prompts=1, max_new_tokens=8,
        dtype="float32",
    )  # fmt: skip
    counts = {"verify_ct": 3, "correct_drafts": 5, "histogram": (1, 0, 1, 1)} if arm != "ar" else {}
    row = Row(
        index=0, prompt_id="p7", prompt_hash="h", prompt_tokens=4, completion_tokens=8, finish_reason="length",
        sent_s=0.0, first_token_s=0.1, done_s=wall_s or 0.1, output_hash=output, **counts,
    )  # fmt: skip
    header = Header(
        cell=cell, outcome=outcome, reason=reason, wall_s=wall_s, allocation="a",
        environment={**ENVIRONMENT, "attested": attested},
    )  # fmt: skip
    store.write_cell(run_dir, header, [row] if outcome == "ok" else [])


def printed(run_dir):
    """(exit code, lines of the Markdown table by arm, all of the Markdown, what the terminal got)."""
    out = io.StringIO()
    results, frames = load_run(str(run_dir))
    code = report(run_dir, results, frames, Console(file=out, width=160))
    text = (run_dir / "table.md").read_text()
    lines = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("|")}
    cells = {arm: [part.strip() for part in line.split("|")[2:-1]] for arm, line in lines.items()}
    return code, cells, text, out.getvalue()


def test_every_tau_throughput_and_speedup(tmp_path):
    """tau 1 + 5/3, emitted (8 - 1)/3, SGLang's 8/3; 8 tokens in 2 s against 8 in 4 s."""
    write(tmp_path, "ar", 4.0)
    write(tmp_path, "dflash", 2.0)
    code, cells, text, terminal = printed(tmp_path)
    assert code == 0
    assert cells["DFlash †"] == ["2.67", "2.33", "2.67", "4.0", "2.00", "1", "3", "1/1"]
    assert cells["AR"] == ["", "", "", "2.0", "1.00", "1", "", ""]
    assert "### mini, GSM8K, T=0, concurrency 1" in text
    assert "tau\\_emitted = (completion - 1) / blocks" in text
    assert "2.33" in terminal
    assert "† unaudited" in text


def test_a_failed_cell_shows_its_reason(tmp_path):
    write(tmp_path, "ar", 4.0)
    write(tmp_path, "dflash", None, outcome="server_died", reason="the server exited with code 3")
    _, cells, text, _ = printed(tmp_path)
    assert cells["DFlash †"][0].endswith("(1)")
    assert "the server exited with code 3" in text.replace("\\", "")


def test_speedup_without_ar_is_a_hole(tmp_path):
    write(tmp_path, "dflash", 2.0)
    _, cells, text, _ = printed(tmp_path)
    assert cells["DFlash †"][0] == "2.67"
    assert cells["DFlash †"][4].endswith("(1)")
    assert "no ok AR cell" in text


def test_an_unequal_greedy_output_is_shown_and_fails(tmp_path):
    write(tmp_path, "ar", 4.0)
    write(tmp_path, "dflash", 2.0, output="other")
    code, cells, text, _ = printed(tmp_path)
    assert code == 1
    assert cells["DFlash †"][-1] == "0/1"
    assert "mini/dflash gsm8k c=1 r0: 0 of 1 greedy outputs equal AR's; the first that differs is of prompt p7" in text


def test_unattested_rows_are_marked(tmp_path):
    write(tmp_path, "dflash", 2.0, attested=False)
    _, cells, _, _ = printed(tmp_path)
    assert "DFlash † (unattested)" in cells


def test_a_run_without_any_good_cell_still_has_a_table(tmp_path):
    write(tmp_path, "dflash", None, outcome="oom", reason="no memory")
    code, cells, text, _ = printed(tmp_path)
    assert code == 0
    assert "no memory" in text
    assert "DFlash †" in cells

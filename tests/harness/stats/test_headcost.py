"""A head of 0.300 ms at short answers: prefill gets into the paper's estimate, and a caution says so."""

import pytest

from harness.load_results import load_results
from harness.stats.headcost import place
from harness.tables import registry
from tests import synthetic_run as synthetic

SETS = ("gsm8k", "mbpp", "math500", "speed-qualitative")
HEAD = synthetic.HEAD_MS["lilicorr"]
AT = place("Qwen3-8B", "lilicorr")


def results(tmp_path, tokens, monkeypatch):
    monkeypatch.setattr(synthetic, "LAUNCH_NOISE", 0.0)
    whole = {"prompts": 60, "max_new_tokens": 10 * tokens}  # no answer is cut
    cells = [synthetic.cell("Qwen3-8B", arm, b, **whole) for arm in ("ar", "dflash", "lilicorr") for b in SETS]
    return load_results(str(synthetic.write(tmp_path / "run", synthetic.run(cells, tokens=tokens))))


def test_short_answers_take_the_paper_estimate_away_from_the_truth_and_it_is_said(tmp_path, monkeypatch):
    found = results(tmp_path, 120, monkeypatch)
    paper, decode = (found.get(AT, name) for name in ("head_ms", "head_decode_ms"))
    assert pytest.approx(0.300) == HEAD
    assert not paper.low <= HEAD <= paper.high
    assert decode.value == pytest.approx(HEAD, abs=1e-6)
    assert any("intervals do not touch" in text for text in found.cautions[AT])
    shown = registry.table(found, "3")
    assert [column.name for column in shown.columns] == ["head, ms", "decode only, ms", "% of block"]
    assert any("intervals do not touch" in note for note in shown.notes)


def test_long_answers_need_no_caution(tmp_path, monkeypatch):
    found = results(tmp_path, 40_000, monkeypatch)
    paper = found.get(AT, "head_ms")
    assert paper.low - 1e-3 <= HEAD <= paper.high + 1e-3
    assert not any("intervals" in text for text in found.cautions.get(AT, ()))

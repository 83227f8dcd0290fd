"""The page: who is first and how surely, what is in doubt, and the same in every format."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from harness.load_results import load_results
from harness.report import latency, load, render
from harness.report.page import brief, report
from harness.report.ranking import panels
from harness.report.read import read
from harness.stats.estimate import Estimate, Missing
from harness.stats.setting import AVERAGE
from harness.store import run as store
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic
from tests.harness.report.made import run

HOSTILE = "</script><script>alert(1)</script><img src=x>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(tmp_path_factory.mktemp("run"), prompts=120, concurrency=(1, 4))


@pytest.fixture(scope="module")
def measured(folder):
    return load_results(str(folder))


def section(found, title):
    return next(s for s in found.sections if s.title == title)


def test_arms_are_ranked_by_their_speedup_and_each_stands_beside_the_first(measured):
    panel = next(p for p in panels(measured) if p.place.concurrency == 1)
    assert panel.place.benchmark == AVERAGE
    assert {r.setting.arm for r in panel.ranks} == {"lilicorr", "dflash", "dspark", "ar"}
    assert (panel.ranks[0].setting.arm, panel.ranks[-1].setting.arm) == ("lilicorr", "ar")
    speeds = [r.speedup.value for r in panel.ranks]
    assert speeds == sorted(speeds, reverse=True)
    assert panel.ranks[0].behind is None
    second = panel.ranks[1].behind
    assert second.change.value == pytest.approx(
        100 * (panel.ranks[1].throughput.value / panel.ranks[0].throughput.value - 1)
    )


def test_the_answer_names_the_first_its_speedup_and_whether_it_is_exact(folder):
    lines = section(read(str(folder)), "Who is fastest").lines
    assert "LiLiCorr" in lines[0]
    assert "times AR" in lines[0]
    assert lines[-1] == "LiLiCorr: not audited: whether it is exact is not known."


def test_an_arm_that_failed_its_audit_is_never_first(measured):
    measured = replace(measured, unaudited={"lilicorr": "fail"})
    panel = panels(measured)[0]
    assert panel.ranks[-1].setting.arm == "lilicorr"
    page = render.terminal(report(measured))
    assert "x LiLiCorr" in page
    assert "FAILED" in page


def test_an_audited_arm_says_so(measured):
    page = report(replace(measured, unaudited={}))
    assert page.sections[0].lines[-1].startswith("LiLiCorr: audited, and exact")


@pytest.fixture
def failed(tmp_path):
    made = []
    for arm in ("ar", "dflash", "lilicorr"):
        cells = [synthetic.cell("Qwen3-8B", arm, "gsm8k", prompts=30)]
        for header, rows in synthetic.run(cells):
            made.append(synthetic.failed(header, "oom", HOSTILE) if arm == "lilicorr" else (header, rows))
    return synthetic.write(tmp_path, made)


def test_a_failed_arm_is_named_in_the_answer_the_table_and_the_doubts_with_a_remedy(failed):
    page = read(str(failed))
    assert "No number for LiLiCorr: who is fastest may change." in page.sections[0].lines[0]
    assert any("- LiLiCorr" in row.label for row in page.sections[1].tables[0].rows)
    assert any("oom" in line for line in section(page, "Not measured, or in doubt").lines)
    assert any("specbench status" in line for line in section(page, "What to do next").lines)


def test_a_run_of_which_only_ar_is_left_has_a_report(tmp_path):
    made = []
    for arm in ("ar", "lilicorr"):
        for header, rows in synthetic.run([synthetic.cell("Qwen3-8B", arm, "gsm8k", prompts=5)]):
            made.append(synthetic.failed(header, "oom", "full") if arm == "lilicorr" else (header, rows))
    page = read(str(synthetic.write(tmp_path, made)))
    assert "no drafter has a speed" in page.sections[0].lines[0]
    assert render.terminal(page)


def test_hostile_words_stay_words_in_html_and_markdown(failed):
    page = read(str(failed))
    assert "<script>alert" not in render.html(page)
    assert "<img" not in render.html(page)
    assert "<img" not in render.markdown(page).replace("\\<img", "")


def test_every_format_says_the_same_numbers(folder):
    page = read(str(folder))
    number = f"{panels(load_results(str(folder)))[0].ranks[0].speedup.value:.2f}"
    for text in (render.terminal(page), render.markdown(page), render.html(page)):
        assert number in text
        assert "who is fastest" in text.lower()


def test_the_brief_report_leaves_out_the_tables(folder):
    assert all(not s.tables for s in brief(read(str(folder))).sections)


def test_percentiles_are_those_of_the_requests_and_the_clock_is_named(folder):
    frames = store.load(folder)
    table = latency.table(frames.cells, frames.rows)
    cells = frames.cells[(frames.cells.arm == "ar") & (frames.cells.prompt_set == "gsm8k")]
    rows = frames.rows[frames.rows.cell.isin(cells[cells.concurrency == 1].cell)]
    latencies = np.sort((rows.done_s - rows.sent_s).to_numpy())
    row = next(r for r in table.rows if r.label == "AR" and "GSM8K" in r.section and r.section.endswith(" 1"))
    p99 = row.cells[5].content.value
    assert (latencies < p99).mean() == pytest.approx(0.99, abs=1 / len(latencies))
    assert row.cells[0].content.value == pytest.approx(1000 * synthetic.PREFILL_S, rel=0.02)
    assert "client's clock" in table.notes[0]
    assert "server's own clock" in table.notes[0]


def test_a_percentile_needs_a_request_beyond_it():
    values = np.arange(99.0)
    assert isinstance(latency.percentile(values, 90), Estimate)
    assert latency.percentile(values, 99) == Missing("p99 needs 100 requests")
    assert isinstance(latency.percentile(np.array([]), 50), Missing)


def test_no_requests_no_latency_table(folder):
    frames = store.load(folder)
    assert latency.table(frames.cells, frames.rows.iloc[:0]) is None


def test_tau_over_concurrency_is_told_where_it_was_measured(measured):
    (line,) = load.drift(measured)
    assert "tau moves" in line
    (table,) = load.tables(measured)
    assert [c.name for c in table.columns] == ["1", "4"]


def test_tau_over_concurrency_of_the_paper_is_not_known():
    """Its Table 17 is not in our copy."""
    assert "how far tau moves over concurrency is not known" in " ".join(load.drift(load_results("paper")))


def test_the_paper_has_a_report_without_audits_of_ours():
    page = read("paper", "lilicorr,dspark")
    assert "not audited here" in page.sections[0].lines[-1]
    assert "LiLiCorr is 3.9 % [3.7, 4.1] faster than DSpark" in render.markdown(page).replace("\\", "")


def test_an_unknown_arm_is_refused(folder):
    with pytest.raises(UserError, match="has no arm 'lilicor'"):
        read(str(folder), "lilicor")


def test_marks_of_the_audit_come_from_certificates(folder, monkeypatch):
    monkeypatch.setattr("harness.load_results.unaudited", lambda cells, certificates: {})
    assert isinstance(store.load(folder).cells, pd.DataFrame)
    assert {r.badge for r in panels(read_results(folder))[0].ranks} == {"reference", "audited"}


def read_results(folder):

    return load_results(str(folder))

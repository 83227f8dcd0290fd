"""The generator makes rows that a real server could have sent."""

from harness.store import cell_file, row_checks
from tests import synthetic_run as synthetic

CELLS = [
    synthetic.cell("T", arm, name, t, prompts=12, concurrency=c)
    for arm in ("ar", "dflash", "lilicorr") for name in ("gsm8k", "mt-bench", "speed-qualitative")
    for t in (0.0, 1.0) for c in (1, 4)
]  # fmt: skip


def test_rows_keep_the_identities_and_streams_never_overlap():
    for header, rows in synthetic.run(CELLS):
        assert row_checks.defects(cell_file.as_table(rows), header.cell, 16, header.wall_s) == []
        edges = sorted([(r.sent_s, 1) for r in rows] + [(r.done_s, -1) for r in rows], key=lambda e: (e[0], e[1]))
        flying = peak = 0
        for _, step in edges:
            flying += step
            peak = max(peak, flying)
        assert peak <= header.cell.concurrency
        assert header.wall_s == max(r.done_s for r in rows)


def test_last_blocks_are_cut_now_and_then():
    _, rows = next(iter(synthetic.run([synthetic.cell("T", "lilicorr", "gsm8k", prompts=50)])))
    cuts = [1 + r.correct_drafts + r.verify_ct - r.completion_tokens for r in rows]
    assert 0 in cuts
    assert max(cuts) > 3


def test_same_cells_same_rows():
    assert list(synthetic.run(CELLS[:4])) == list(synthetic.run(CELLS[:4]))


def test_the_paper_matrix_has_the_size_of_the_paper():
    assert len(synthetic.paper_cells(1, repeats=3)) >= 1188
    assert len({c.id for c in synthetic.paper_cells(1)}) == len(synthetic.paper_cells(1))

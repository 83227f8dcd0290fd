"""Runs that are whole and unusual: nothing but failures, answers of one token, names that nearly clash."""

import json
import re
from dataclasses import replace

import pytest

from tests import synthetic_run as synthetic
from tests.faults.test_forged_runs import READERS, SEEN, answered
from tests.harness import mutations

ARMS = ("ar", "dflash", "lilicorr")


def cells(arms=ARMS, sets=("gsm8k",), temperatures=(0.0,), target="Qwen3-8B", **changes):
    changes = {"prompts": 4, **changes}
    return [synthetic.cell(target, a, s, t, **changes) for a in arms for s in sets for t in temperatures]


def failed(header, _rows):
    return replace(header, outcome="timeout", reason="[/red] late", wall_s=None), []


def one_token(header, rows):
    """Every request ends with the token of its prefill: there are no blocks."""
    short = [
        replace(r, completion_tokens=1, verify_ct=None, correct_drafts=None, histogram=None, done_s=r.first_token_s)
        for r in rows
    ]
    wall = max(r.done_s for r in short) - min(r.sent_s for r in short)
    return replace(header, wall_s=wall), short


def at_once(header, rows):
    """A clock that stood still."""
    still = [replace(r, sent_s=0.0, first_token_s=0.0, done_s=0.0) for r in rows]
    return replace(header, wall_s=0.0), still


def as_it_is(header, rows):
    return header, rows


ODD = {
    "all failed": (cells(), failed),
    "one token": (cells(), one_token),
    "one token of one arm": (cells(), lambda h, r: one_token(h, r) if h.cell.arm == "dflash" else (h, r)),
    "only AR": (cells(arms=("ar",)), as_it_is),
    "no AR": (cells(arms=("dflash", "lilicorr")), as_it_is),
    "AR failed": (cells(), lambda h, r: failed(h, r) if h.cell.arm == "ar" else (h, r)),
    "one prompt": (cells(prompts=1), as_it_is),
    "a clock that stood still": (cells(), at_once),
    "names that nearly clash": (cells(sets=("a_b", "a-b", "A-B", "a b", "a/b", "..")), as_it_is),
    "hostile names": (cells(sets=("[/red]", "</script><b>", "a\nb", "$x$", "\\frac", "x" * 300)), as_it_is),
    "a target that names a folder": (cells(target="../../../evil [red] </b>"), as_it_is),
    "temperatures that look alike": (cells(temperatures=(0.0, 1e-9, 1.0, 1.0000001)), as_it_is),
}

DRAWN = ("all failed", "one token", "only AR", "a clock that stood still", "hostile names")  # the slow readers, too


@pytest.fixture
def made(tmp_path):
    """``made(kind)``: the odd run, and a usual one beside it."""

    def make(kind):
        planned, change = ODD[kind]
        stored = [change(header, rows) for header, rows in mutations.made(planned, seen=SEEN)]
        synthetic.write(tmp_path / "run", stored)
        synthetic.write(tmp_path / "other", mutations.made(cells(), seen=SEEN))
        return tmp_path / "run", tmp_path / "other"

    return make


@pytest.mark.slow
@pytest.mark.parametrize("kind", ODD)
def test_every_reader_has_an_answer(specbench, made, kind):
    run, other = made(kind)
    for reader, call in READERS.items():
        if reader in ("dashboard", "plot") and kind not in DRAWN:
            continue
        answered(specbench(*call(run, other)), reader)
    answered(specbench("tables", run, "--out", run / "t"), "")
    if kind in ("all failed", "one token"):  # the slowest: every figure
        answered(specbench("plot", run, "--out", run / "f"), "")
    outside = run.parent.parent
    assert {p.name for p in outside.iterdir() if "evil" in p.name} == set()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["names that nearly clash", "hostile names", "one token", "all failed"])
def test_a_page_each_and_no_number_that_a_script_cannot_read(specbench, made, kind):
    """Sets ``a_b`` and ``a-b`` wrote one page; NaN in data broke a page's scripts."""
    run, _ = made(kind)
    assert specbench("dashboard", "--run", run, "--out", run / "site").code == 0
    pages = sorted((run / "site").glob("*.html"))
    names = {cell.prompt_set for cell in ODD[kind][0]}
    if kind != "all failed":
        assert len([p for p in pages if p.name.startswith("set-")]) == len(names)
    json_block = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)
    blocks = [block for page in pages for block in json_block.findall(page.read_text())]
    for block in blocks:
        json.loads(block, parse_constant=lambda text: pytest.fail(f"{text} in a script"))
    assert blocks or kind == "all failed"


@pytest.mark.parametrize(
    "call",
    [
        ("gate", "run", "--baseline", "NOSUCH"),
        ("gate", "NOSUCH", "--baseline", "other"),
        ("compare", "run", "NOSUCH"),
        ("compare", "NOSUCH", "run"),
        ("dashboard", "--run", "NOSUCH"),
        ("dashboard", "--run", "run", "--baseline", "NOSUCH"),
        ("report", "NOSUCH"),
        ("plot", "NOSUCH"),
        ("status", "NOSUCH"),
        ("model", "--run", "NOSUCH"),
        ("tables", "run", "NOSUCH"),
        ("tables", "run", "run"),
        ("export", "run", "run"),
        ("compare", "run", "--arms", "dflash", "nosuch"),
        ("tables", "run", "--arms", "nosuch"),
        ("tables", "run", "--trace", "1:0:0:0"),
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_refused(specbench, made, call):
    made("one prompt")
    done = specbench(*call)
    assert done.code in (2, 3, 4) or call == ("tables", "run", "run"), done
    assert "Traceback" not in done.out + done.err

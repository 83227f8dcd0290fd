"""Every command that reads a run, on a run of which one file is forged, torn or changed: an answer, or one line.

1 is what `gate` says of a regression that it judged, and `status` of cells that failed; nothing else may say it.
"""

import json
import os
import shutil
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from harness.store import run as store
from tests import synthetic_run as synthetic
from tests.faults import forged
from tests.faults.changes import EXAMPLES, changed, fuzz
from tests.faults.changes import torn as torn_bytes
from tests.harness import mutations

SEEN = {
    "environment": {"device_name": "GPU", "driver": "580", "sglang": "0.5.23", "torch": "2.14.1", "attested": True,
                    "cores": 8, "load": 0.5, "threads": 1, "specbench": "0.1.0", "commit": "abc"},
    "attestation": {"window": 16, "device": "cuda", "dtype": "bfloat16", "patches": {"a": "applied"}},
    "machine": {"seconds": 1.0, "cores": 8, "load": [0.5, 0.6], "own_cpu": 0.1, "other_cpu": 0.0, "steal": 0.0},
    "provenance": {"schema": 1, "contract": {"seed": 7}, "recipe": {"loss": {}}, "steps": 5},
    "server_args": {"dtype": "bfloat16"}, "warmup": {"requests": 2}, "cautions": ("few blocks",),
    "started_at": "2026-01-01T00:00:00+00:00", "server_env": {"A": "b"}, "server_argv": ("python",),
}  # fmt: skip
READERS = {
    "tables": lambda run, other: ("tables", run, "--format", "md"),
    "table 4": lambda run, other: ("tables", run, "--table", "4"),
    "compare": lambda run, other: ("compare", run, other),
    "compare with": lambda run, other: ("compare", other, run),
    "arms": lambda run, other: ("compare", run, "--arms", "dflash", "ar"),
    "gate": lambda run, other: ("gate", run, "--baseline", other),
    "gate against": lambda run, other: ("gate", other, "--baseline", run),
    "report": lambda run, other: ("report", run, "--format", "html"),
    "status": lambda run, other: ("status", run),
    "model": lambda run, other: ("model", "--run", run, "--target", "qwen3-8b"),
    "survival": lambda run, other: ("model", "--survival", f"{run}:dflash"),
    "merged": lambda run, other: ("tables", run, other),
    "accept": lambda run, other: ("baseline", "accept", run, "--why", "w", "--file", run / "b.json"),
    "dashboard": lambda run, other: ("dashboard", "--run", run, "--out", run / "site"),
    "plot": lambda run, other: ("plot", run, "--out", run / "figures", "--only", "survival"),
}
SLOWER = {"dashboard": 4, "plot": 2, "report": 2}  # so many times fewer examples


@pytest.fixture
def runs(tmp_path):
    """Two equal runs of AR and two drafters; a cell of each has failed."""
    for name in ("run", "other"):
        cells = [
            synthetic.cell("Qwen3-8B", arm, "gsm8k", temperature, prompts=4, concurrency=c)
            for arm in ("ar", "dflash", "lilicorr") for temperature in (0.0, 1.0) for c in (1, 2)
        ]  # fmt: skip
        made = list(mutations.made(cells, seen=SEEN))
        header, rows = made.pop()
        made.append((replace(header, outcome="timeout", reason="[/red] late", wall_s=None), rows[:2]))
        synthetic.write(tmp_path / name, made)
    return tmp_path / "run", tmp_path / "other"


def answered(done, reader):
    own = {"gate": (1, 5), "gate against": (1, 5), "status": (1,)}  # 5: cells failed by the machine
    assert done.code in (0, 2, 3, 4, *own.get(reader, ())), done
    assert "Traceback" not in done.out + done.err, done
    assert done.code != 2 or done.err.count("\n") == 1, done
    if done.code == 1 and reader != "status":
        assert "regression" in done.out


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_a_forged_cell(specbench, runs, reader):
    run, other = runs
    paths = store.cell_files(run)
    call = READERS[reader](run, other)
    answered(specbench(*call), reader)

    def check(example):
        path, (name, data) = example
        held = path.read_bytes()
        path.unlink()
        (run / "cells" / name).write_bytes(data)
        try:
            answered(specbench(*call), reader)
        finally:
            (run / "cells" / name).unlink()
            path.write_bytes(held)

    strategy = st.sampled_from(paths).flatmap(lambda path: st.tuples(st.just(path), forged.cells(path)))
    fuzz(strategy, check, EXAMPLES // SLOWER.get(reader, 1))


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["tables", "gate", "status", "report"])
def test_a_forged_plan(specbench, runs, reader):
    run, other = runs
    path = run / "plan.json"
    good = path.read_bytes()

    def check(example):
        path.write_bytes(example if isinstance(example, bytes) else json.dumps(example).encode(errors="surrogatepass"))
        answered(specbench(*READERS[reader](run, other)), reader)

    fuzz(st.one_of(changed(json.loads(good)), torn_bytes(good)), check, EXAMPLES // SLOWER.get(reader, 1))


KIN = [
    "a folder",
    "a fifo",
    "a link to itself",
    "a link to nowhere",
    "empty",
    "text",
    "a name that is no id",
    "no cells",
]


@pytest.mark.slow
@pytest.mark.parametrize("what", KIN)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_cell_file(specbench, runs, reader, what):
    run, other = runs
    path = store.cell_files(run)[0]
    held = path.read_bytes()
    path.unlink()
    if what == "a folder":
        path.mkdir()
    elif what == "a fifo":
        os.mkfifo(path)
    elif what.startswith("a link"):
        path.symlink_to(path if "itself" in what else "nowhere")
    elif what == "a name that is no id":
        (path.parent / "[red]\n\udcff.parquet").write_bytes(held)
    elif what == "no cells":
        shutil.rmtree(path.parent)
    else:
        path.write_bytes(b"" if what == "empty" else b"hello\n" * 100)
    answered(specbench(*READERS[reader](run, other)), reader)

"""All tables over a run of the paper's size, as a user gets them. Aims: under 10 s and under 1 GB on two idle cores.

A busy machine shows in the first number only; the processor's own seconds stand beside it.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests import synthetic_run as synthetic

CELLS, ROWS = 1200, 400_000
TABLES = "from sglang_specbench.cli import main; main()"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        synthetic.write(run, synthetic.run(synthetic.paper_cells(ROWS // CELLS, repeats=3)[:CELLS]))
        measure(run, Path(folder) / "tables")


def measure(run: Path, out: Path) -> None:
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", TABLES, "tables", str(run), "--format", "md", "--out", str(out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cells = len(list((run / "cells").iterdir()))
    print(
        f"tables: {len(list(out.iterdir()))} tables from {cells:,} cells: {seconds:.1f} s "
        f"({cpu:.1f} s of processor), peak {after.ru_maxrss / 2**20:.2f} GiB"
    )


if __name__ == "__main__":
    main()

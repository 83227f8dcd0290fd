"""All tables over a run of the paper's size: seconds, processor seconds, peak memory. Aims: under 10 s and 1 GB."""

import resource
import tempfile
import time
from pathlib import Path

from harness import synthetic
from harness.stats.load import load_results
from harness.tables.registry import TABLES
from harness.tables.render import FORMATS

CELLS, ROWS = 1200, 400_000


def cells():
    """1,200 cells of about 333 rows."""
    made = synthetic.paper_cells(1, repeats=3)[:CELLS]
    share = ROWS // len(made)
    return synthetic.paper_cells(share, repeats=3)[:CELLS]


def main():
    with tempfile.TemporaryDirectory() as folder:
        synthetic.write(Path(folder), synthetic.run(cells()))
        measure(folder)


def measure(folder):
    wall, cpu = time.perf_counter(), time.process_time()
    results = load_results(folder)
    loaded = time.perf_counter() - wall
    texts = [render(table(results)) for table in TABLES.values() for render, _ in FORMATS.values()]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"tables: {len(TABLES)} tables in {len(FORMATS)} formats, {sum(map(len, texts)):,} characters, "
        f"{len(results.cells):,} cells: {time.perf_counter() - wall:.1f} s "
        f"({loaded:.1f} s to load and estimate; {time.process_time() - cpu:.1f} s of processor), peak {memory:.2f} GiB"
    )


if __name__ == "__main__":
    main()

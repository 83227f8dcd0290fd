"""What a run ends with: the answer under its tables, and the report in its folder."""

from pathlib import Path

from harness.report import render
from harness.report.page import brief, report
from harness.stats.results import Results
from harness.store.frames import Frames
from sglang_specbench.atomic_file import write_text
from sglang_specbench.console import Console

NAME = "report"


def tell(run_dir: Path, results: Results, frames: Frames, console: Console) -> None:
    """Print who is fastest, what is in doubt and what to do next; write ``RUN/report.md`` and ``RUN/report.html``."""
    whole = report(results, frames.rows)
    console.print(render.terminal(brief(whole)), end="", soft_wrap=True)
    for ending, made in (("md", render.markdown(whole)), ("html", render.html(whole))):
        write_text(run_dir / f"{NAME}.{ending}", made)
    console.print(f"report: {run_dir / f'{NAME}.html'}", soft_wrap=True)

"""What a run ends with: the answer under its tables, and the report in its folder."""

from pathlib import Path

from harness.report import render
from harness.report.page import brief
from harness.report.read import read
from harness.store import run as store
from sglang_specbench.atomic_file import write_text
from sglang_specbench.console import Console

NAME = "report"


def tell(run_dir: Path, console: Console) -> None:
    """Print who is fastest, what is in doubt and what to do next; write ``RUN/report.md`` and ``RUN/report.html``.

    Nothing where no cell was reached.
    """
    if not store.cell_files(run_dir):
        return
    report = read(str(run_dir))
    console.print(render.terminal(brief(report)), end="", soft_wrap=True)
    for ending, made in (("md", render.markdown(report)), ("html", render.html(report))):
        write_text(run_dir / f"{NAME}.{ending}", made)
    console.print(f"report: {run_dir / f'{NAME}.html'}", soft_wrap=True)

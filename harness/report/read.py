"""From the word that a user writes for a run to its report."""

from harness.load_results import load_run
from harness.report.page import Report, report


def read(run: str, arms: str = "") -> Report:
    """The report of a run folder or of ``paper``; ``arms`` as `harness.stats.chosen.of_arms` takes it."""
    results, frames = load_run(run, arms)
    return report(results, frames.rows if frames else None)

"""From the word that a user writes for a run to its report."""

from pathlib import Path

from harness.audit import coverage
from harness.load_results import load_results
from harness.paper import published
from harness.report.page import Report, report
from harness.stats.chosen import of_arms
from harness.stats.results import Results
from harness.store import run as store


def read(run: str, arms: str = "") -> Report:
    """The report of a run folder or of ``paper``; ``arms`` as `harness.stats.chosen.of_arms` takes it."""
    results = of_arms(audited(run), arms)
    rows = None if run == published.NAME else store.load(Path(run)).rows
    return report(results, rows)


def audited(run: str) -> Results:
    """A run's results, arms without a passed certificate marked."""
    results = load_results(run)
    if results.cells is not None:
        results.unaudited = coverage.unaudited(results.cells, coverage.read([Path(run)]))
    return results

"""What a run did not measure and what is in doubt in it, each with what to do about it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from harness.report.sentences import title
from harness.stats import noise
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import AVERAGE

FEW = 30  # prompts: below it a bootstrap interval over prompts is itself rough


@dataclass(frozen=True, kw_only=True)
class Gap:
    """``remedy`` is empty where nothing can be done."""

    text: str
    remedy: str = ""


def gaps(results: Results) -> list[Gap]:
    """Worst first: failed and missing cells, exactness, then what widens every interval."""
    if results.cells is None:
        return [
            Gap(
                text=f"Rows, launches, audits and latency: {results.default_reason}.",
                remedy="Measure it yourself: specbench run paper_main (docs/reproduce.md).",
            )
        ]
    return [*_holes(results), *_exactness(results), *_precision(results), *_scope(results)]


def _holes(results: Results) -> Iterator[Gap]:
    """Settings without a number, one line a reason."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for setting, why in results.holes.items():
        if not setting.category and setting.benchmark != AVERAGE:
            reasons[why].append(str(setting))
    waiting = "not run yet"
    for why, names in reasons.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        remedy = f"specbench run {results.name}/sweep.toml --out {results.name} measures what is missing."
        if waiting not in why:
            remedy = f"specbench status {results.name} shows the server's log; then: {remedy}"
        yield Gap(text=f"No number for {names[0]}{more}: {why}.", remedy=remedy)


def _exactness(results: Results) -> Iterator[Gap]:
    said = {
        "fail": (
            "FAILED the audit: not the target's distribution, so not a drafter",
            "fix it before its speed counts",
        ),
        "inconclusive": ("the audit did not decide", "audit it with more samples: specbench audit SWEEP --samples"),
        "unaudited": ("not audited with these weights and versions", "specbench audit SWEEP"),
    }
    for verdict, (words, remedy) in said.items():
        arms = [title(arm) for arm, found in results.unaudited.items() if found == verdict]
        if arms:
            yield Gap(text=f"{', '.join(arms)}: {words}.", remedy=f"{remedy}.")
    cells = results.cells
    if cells is not None and "env_attested" in cells and not cells[cells.outcome == "ok"].env_attested.all():
        yield Gap(text="Some servers did not say what they ran: unattested cells.", remedy="serve with our plugin.")


def _precision(results: Results) -> Iterator[Gap]:
    places = {(s.target, s.temperature, s.concurrency) for s in results.settings() if s.benchmark != AVERAGE}
    open_ = sorted(places - set(noise.floors(results, "throughput")))
    if open_:
        named = ", ".join(f"{t} T = {temperature:g} c = {c}" for t, temperature, c in open_[:3])
        more = f" and {len(open_) - 3} more" if len(open_) > 3 else ""
        yield Gap(
            text=f"How far one launch lies from the next: no A/A cells at {named}{more}; the 1 % band stands in.",
            remedy="Set repeats = 2 or more in the sweep.",
        )
    sizes = [
        e.n
        for s in results.settings()
        if s.benchmark != AVERAGE and not s.category and isinstance(e := results.get(s, "throughput"), Estimate)
    ]
    if sizes and min(sizes) < FEW:
        yield Gap(
            text=f"Few prompts ({min(sizes)} in the smallest set): intervals are wide, and rough below {FEW}.",
            remedy="Raise prompts in the sweep's sets.",
        )


def _scope(results: Results) -> Iterator[Gap]:
    cells = results.cells
    assert cells is not None
    if (cells.device == "cpu").any():
        yield Gap(
            text="Speeds are those of a CPU server: they show that the path works, not what a GPU would do.",
            remedy="Run the sweep on the GPU that you serve on: docs/reproduce.md.",
        )
    sampled = cells[cells.temperature > 0]
    if len(sampled) and sampled.groupby(["target", "arm"]).seed.nunique().max() < 2:
        yield Gap(text="One seed at T > 0: the spread over seeds is not in any interval.", remedy="Set three seeds.")
    if cells.concurrency.nunique() == 1:
        c = cells.concurrency.iloc[0]
        yield Gap(
            text=f"One concurrency ({c}): nothing is said about other loads.", remedy="List several in the panel."
        )
    if not cells.stream.any():
        yield Gap(text="Gaps between tokens: answers were not streamed.", remedy="Set stream = true in the sweep.")

"""Ablations: each variant of an arm (``lilicorr@k4``) and each other decode rule, beside the arm itself.

Changes are paired by prompts. Tokens a second are tokens a block (tau) times blocks a second, so the last two columns
say where a change of speed comes from.
"""

from collections.abc import Iterator

from harness.stats.blocks import QUANTITY, block_draws, blocks_per_s
from harness.stats.contrast import relative
from harness.stats.estimate import Estimate, Missing, from_draws
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting, printed, table_order
from harness.tables.build import title_of
from harness.tables.table import Column, Table, TableCell, TableRow
from sglang_specbench.arms import base_of, word_of

EXACT = "-exact"  # the same weights, another decode rule
COLUMNS = (
    Column(name="τ"),
    Column(name="τ, %", group="against the arm itself"),
    Column(name="tokens/s, %", group="against the arm itself"),
    Column(name="blocks/s, %", group="against the arm itself"),
)
NOTE = "Changes are 100 (variant / arm - 1), paired by prompts."


def variants(results: Results) -> Table:
    """A row per variant and prompt set, the mean over sets last."""
    rows = tuple(_rows(results))
    if not rows:
        nothing = f'{results.name} has no variants; a sweep names them: "lilicorr@k4" = "FOLDER".'
        return Table(name="variants", title="Variants", stub="", columns=(), rows=(), notes=(nothing,))
    title = "Variants of an arm against the arm itself"
    return Table(
        name="variants", title=title, stub="Prompt set", columns=COLUMNS, rows=rows, notes=(NOTE,), intervals=True
    )


def original(arm: str) -> str:
    """The arm that ``arm`` is a variant of; "" if it is none."""
    base = base_of(arm)
    if word_of(arm):
        return base
    return base.removesuffix(EXACT) if base.endswith(EXACT) else ""


def _rows(results: Results) -> Iterator[TableRow]:
    whole = [s for s in results.settings() if not s.category and original(s.arm)]
    places = [s for s in whole if s.of(original(s.arm)) in set(results.settings())]
    for place in sorted(places, key=lambda s: (*table_order(s)[:3], s.benchmark == AVERAGE, *table_order(s)[3:])):
        where = f"{place.target}, T = {place.temperature:g}, concurrency {place.concurrency}"
        tier = f" {place.tier}" if place.tier else ""
        label = f"{title_of(results, place.arm)}: {printed(place.benchmark)}{tier}"
        yield TableRow(section=where, label=label, cells=tuple(_cells(results, place)))


def _cells(results: Results, place: Setting) -> Iterator[TableCell]:
    yield TableCell(content=results.get(place, "tau"), setting=place, quantity="tau")
    rival = place.of(original(place.arm))
    for quantity in ("tau", "throughput"):
        yield TableCell(content=relative(results, (place, quantity), results, (rival, quantity)))
    yield TableCell(content=_blocks(results, place, rival))


def _blocks(results: Results, place: Setting, rival: Setting) -> Estimate | Missing:
    own, other = blocks_per_s(results, place), blocks_per_s(results, rival)
    for found in (own, other):
        if isinstance(found, Missing):
            return found
    first, second = block_draws(results, place), block_draws(results, rival)
    if first is None or second is None:
        return Missing("no draws of block times")
    return from_draws(100 * (first / second - 1), 0, f"100 (variant / arm - 1) of {QUANTITY}")

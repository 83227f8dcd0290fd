"""The table that a run ends with: per arm and prompt set, every tau, throughput, speedup, and what failed and why."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.stats.acceptance import LEDGER
from harness.stats.estimate import Estimate, Missing
from harness.stats.greedy_match import Equality, equalities
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting, printed
from harness.store.frames import Frames
from harness.tables.build import absence_notes, audit_notes, title_of
from harness.tables.render import markdown, terminal
from harness.tables.table import Column, Table, TableCell, TableRow, Text, words
from sglang_specbench.arms import ARMS, table_order
from sglang_specbench.atomic_file import write_text
from sglang_specbench.console import Console

NUMBERS = ("tau", "tau_emitted", "tau_sglang", "throughput", "speedup")
COLUMNS = (
    Column(name="tau"),
    Column(name="tau_emitted"),
    Column(name="tau_sglang"),
    Column(name="tokens/s", decimals=1),
    Column(name="speedup"),
    Column(name="requests"),
    Column(name="blocks"),
    Column(name="as AR"),
)
NOTES = (
    *(f"{name} = {LEDGER[name]}" for name in NUMBERS[:3]),
    "tokens/s = completion tokens / wall of the closed loop, prefill included",
    "speedup = tokens/s over those of AR in the same allocation",
    "blocks = verify blocks; as AR = greedy outputs equal to AR's, of those compared",
)


def report(run_dir: Path, results: Results, frames: Frames, console: Console) -> int:
    """Print the tables and write ``RUN/table.md``; 1 if outputs that must be equal are not, else 0."""
    compared = list(equalities(frames.cells, frames.rows))
    tables = build(results, frames, compared)
    for table in tables:
        console.print(terminal(table), end="", soft_wrap=True)
    text = "\n".join(markdown(replace(table, intervals=True)) for table in tables)
    write_text(run_dir / "table.md", f"# {run_dir.name}\n\n{text}")
    console.print(f"table: {run_dir / 'table.md'}", soft_wrap=True)
    return int(any(found.broken for found in compared))


def build(results: Results, frames: Frames, compared: Sequence[Equality]) -> list[Table]:
    """One table per target, prompt set, temperature and concurrency; what holds for all stands under the last."""
    settings = _settings(results)
    tables = [of_place(place, results, frames, compared) for place in sorted({s.of("") for s in settings})]
    if not tables:
        return []
    unequal = tuple(str(found) for found in compared if found.equal < found.compared)
    said = (*NOTES, *absence_notes(results), *audit_notes(results), *unequal, *_cautions(results, settings))
    last = replace(tables[-1], notes=(*tables[-1].notes, *said))
    return [*tables[:-1], last]


def _settings(results: Results) -> list[Setting]:
    return [s for s in results.settings() if not s.category and s.arm in ARMS and s.benchmark != AVERAGE]


def of_place(place: Setting, results: Results, frames: Frames, compared: Sequence[Equality]) -> Table:
    """The arms at ``place``, a setting without its arm."""
    here = [s for s in _settings(results) if s.of("") == place]
    here.sort(key=lambda s: table_order(s.arm))
    tier = f" {place.tier}" if place.tier else ""
    return Table(
        name="first",
        title=f"{place.target}, {printed(place.benchmark)}{tier}, T={place.temperature:g}, "
        f"concurrency {place.concurrency}",
        stub="arm",
        columns=COLUMNS,
        rows=tuple(_row(setting, results, frames, compared) for setting in here),
    )


def _row(setting: Setting, results: Results, frames: Frames, compared: Sequence[Equality]) -> TableRow:
    ids = results.sources.get(setting, ())
    rows = frames.rows[frames.rows.cell.isin(ids)]
    attested = frames.cells[frames.cells.cell.isin(ids)].env_attested.all() if ids else True
    ours = [found for found in compared if found.cell in ids]
    equal = f"{sum(f.equal for f in ours)}/{sum(f.compared for f in ours)}" if ours else ""
    blocks = rows.verify_ct.sum() if setting.arm != "ar" else 0
    return TableRow(
        label=title_of(results, setting.arm) + ("" if attested else " (unattested)"),
        cells=(
            *(TableCell(content=_content(results, setting, q), setting=setting, quantity=q) for q in NUMBERS),
            *words(f"{len(rows):,}" if ids else "", f"{blocks:,}" if blocks else "", equal),
        ),
    )


def _content(results: Results, setting: Setting, quantity: str) -> Estimate | Missing | Text:
    if setting.arm == "ar" and quantity.startswith("tau") and setting not in results.holes:
        return Text("")  # no blocks, by definition
    return results.get(setting, quantity)


def _cautions(results: Results, settings: Sequence[Setting]) -> list[str]:
    """Each caution once, with the settings that carry it."""
    carriers: dict[str, list[str]] = {}
    for setting in settings:
        for text in results.cautions.get(setting, ()):
            carriers.setdefault(text, []).append(str(setting))
    return [f"{names[0]}{_and_more(names)}: {text}" for text, names in carriers.items()]


def _and_more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""

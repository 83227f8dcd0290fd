"""A run's frames to `Results`: seeds and repeats averaged, holes kept.

A setting is the mean over seeds of the mean over repeats. It is a hole, with the reason, as soon as one of its seeds
has no ok cell: a mean over fewer seeds than planned would be another number. Speedups are taken cell by cell within an
allocation, then averaged like everything else.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

import numpy as np
import pandas as pd

from harness.schema.cell import Cell
from harness.schema.facts import judged, unlike
from harness.schema.header import BY_CALL, Outcome
from harness.stats import average, block_width, headcost, speed, steadiness
from harness.stats.absent import absent, gaps, holes, seeds_of, summary
from harness.stats.cell_draws import METHODS, CellDraws, add_speedups, measured
from harness.stats.estimate import Draws, Estimate, Missing, from_draws, mean
from harness.stats.prompt_totals import COLUMNS, PromptPanel, panels
from harness.stats.results import PromptCounts, Results
from harness.stats.setting import AVERAGE, Setting
from sglang_specbench.errors import UserError

KEPT = ("tau", "tau_emitted", "throughput", "speedup", "block_ms")  # draws kept for averages and comparisons
SEED_SPREAD = ("tau", "throughput", "speedup")
NO_AR = "no ok AR cell in the same allocation"
NO_AR_CALL = "measured with --server, and not together with AR in one call: a speedup needs one allocation"


def measure(cells: pd.DataFrame, rows: pd.DataFrame, name: str, planned: Iterable[Cell] | None = None) -> Results:
    """Every estimate of a run; ``cells`` and ``rows`` as `harness.store.run.load` gives them.

    ``planned`` cells that are not among ``cells`` were not run yet, and make holes as failed ones do; None: no plan.
    `UserError` if cells that would be averaged or set against each other are not alike (`comparable`).
    """
    cells = cells.sort_values(["started_at", "order"], kind="stable", ignore_index=True)  # targets as they were run
    plan = None if planned is None else tuple(planned)
    _refuse_unlike(cells, plan or (), name)
    lacking, seeds = absent(cells, plan or ()), seeds_of(cells)
    results = Results(name=name, cells=cells, holes=holes(lacking, seeds), planned=plan, absent=tuple(lacking))
    results.windows = block_width.windows(cells)
    planned_or_run = len({*cells.cell, *(c.id for c in plan or ())})
    results.notes = (*_plan_notes(cells, plan), *summary(lacking, planned_or_run), *block_width.notes(results.windows))
    steady = speed.steady_state(rows, dict(zip(cells.cell, cells.concurrency, strict=True)))
    whole: list[CellDraws] = []
    counts: dict[str, PromptCounts] = {}
    for panel in panels(cells, rows):
        counts |= _counts(panel)
        for category in _split(panel):
            found = [measured(panel, i, category) for i in range(len(panel.cells))]
            add_speedups(found)
            if not category:
                for m in found:
                    m.draws["steady_throughput"] = np.array([steady[m.cell.cell]])
                whole += [_slim(m) for m in found]
            _settle(results, found)
    results.per_cell, results.prompt_counts = pd.DataFrame([_line(m) for m in whole]), counts
    headcost.add(results, _blocks(whole, "block_ms"), _blocks(whole, "decode_block_ms"))
    average.add(results, KEPT)
    results.gaps = gaps(lacking, seeds)
    _doubt(results, whole)
    _caution(results)
    return results


def _refuse_unlike(cells: pd.DataFrame, planned: Iterable[Cell], name: str) -> None:
    """`UserError` with field and both values where ok cells, or one and a planned cell, are not alike."""
    lines = cells[cells.outcome == Outcome.OK].to_dict("records")
    measured_ones = [(f"cell {line['cell']}", judged({str(k): v for k, v in line.items()})) for line in lines]
    for found in unlike([*measured_ones, *(("the plan", judged(vars(cell))) for cell in planned)]):
        raise UserError(f"{name}: {found}", "keep them in run folders of their own")


def _plan_notes(cells: pd.DataFrame, planned: tuple[Cell, ...] | None) -> tuple[str, ...]:
    if planned is None:
        return ("no plan.json: what this run was to measure, and lacks, cannot be told",)
    known = {cell.id for cell in planned}
    foreign = cells[(cells.outcome == Outcome.OK) & ~cells.cell.isin(known)]
    if foreign.empty:
        return ()
    arms = ", ".join(dict.fromkeys(f"{c.target}/{c.arm}" for c in foreign.itertuples()))
    return (f"{len(foreign)} ok cells are in no plan, and are counted: {arms}",)


def _counts(panel: PromptPanel) -> dict[str, PromptCounts]:
    """What each cell accepted and verified, of the prompts that it ran."""
    columns = [COLUMNS.index(name) for name in ("correct", "blocks", "requests", "failed")]
    found = {}
    for cell, sums in zip(panel.cells, panel.sums, strict=True):
        correct, blocks, requests, failed = sums[:, columns].T
        ran = requests + failed > 0
        prompts = tuple(p for p, here in zip(panel.prompts, ran, strict=True) if here)
        found[cell.cell] = PromptCounts(prompts, correct[ran], blocks[ran])
    return found


def _caution(results: Results) -> None:
    """Say at each number what it lacks: at a benchmark, its categories, and the averages and medians over it."""
    for setting in results.settings():
        average_of = setting.benchmark == AVERAGE
        own = _lacked_by(results, setting) if average_of else results.gaps.get(replace(setting, category=""), ())
        if own:
            results.cautions[setting] = tuple(dict.fromkeys((*own, *results.cautions.get(setting, ()))))


def _lacked_by(results: Results, place: Setting) -> list[str]:
    """What the benchmarks of an average lack, and those of a head cost's control."""
    arms = {place.arm, headcost.CONTROL} if headcost.place(place.target, place.arm) == place else {place.arm}
    where = {(place.target, arm, place.temperature, place.concurrency) for arm in arms}
    lacking = [*results.gaps.items(), *((s, (f"left out: {why}",)) for s, why in results.holes.items())]
    here = [(s, texts) for s, texts in lacking if (s.target, s.arm, s.temperature, s.concurrency) in where]
    return [f"{s.arm} {s.benchmark}: {text}" for s, texts in here if not s.tier and not s.category for text in texts]


def _split(panel: PromptPanel) -> list[str]:
    """The whole panel, then its categories if there are several."""
    named = sorted({str(c) for c in panel.categories} - {""})
    return ["", *named] if len(named) > 1 else [""]


def _settle(results: Results, found: Sequence[CellDraws]) -> None:
    """Average cells of one place over repeats, then seeds, and enter them."""
    groups: dict[Setting, list[CellDraws]] = defaultdict(list)
    for m in found:
        groups[m.setting].append(m)
    for setting, group in groups.items():
        hole = results.holes.get(replace(setting, category=""))
        if hole:
            results.holes[setting] = hole
        else:
            _enter(results, setting, group)


def _enter(results: Results, setting: Setting, group: Sequence[CellDraws]) -> None:
    n = group[0].prompts
    for name, method in METHODS.items():
        seeds = _by_seed(group, name)
        if not seeds:
            if reason := group[0].refused.get(name):
                results.put(setting, name, Missing(reason))
            continue
        average_of_seeds = mean(list(seeds.values()))
        results.put(setting, name, from_draws(average_of_seeds, n, method))
        if name in KEPT and not setting.category:
            results.draws[setting, name] = average_of_seeds
        if name in SEED_SPREAD and len(seeds) > 1 and not setting.category:
            _spread(results, setting, name, seeds, n)
    if setting.arm != "ar" and (setting, "speedup") not in results.values:
        hole = results.holes.get(replace(setting.of("ar"), category=""))
        why = NO_AR_CALL if all(BY_CALL in m.cell.allocation for m in group) else NO_AR
        results.put(setting, "speedup", Missing(f"{why}{f' ({hole})' if hole else ''}"))
    results.sources[setting] = tuple(m.cell.cell for m in group)
    notes = (caution for m in group for caution in (*m.cell.cautions, m.note))
    results.cautions[setting] = tuple(dict.fromkeys(filter(None, notes)))


def _by_seed(group: Sequence[CellDraws], name: str) -> dict[int, Draws]:
    """Mean over repeats, per seed, of those cells that have the quantity."""
    seeds: dict[int, list[Draws]] = defaultdict(list)
    for m in group:
        if name in m.draws:
            seeds[m.cell.seed].append(m.draws[name])
    return {seed: mean(draws) for seed, draws in sorted(seeds.items())}


def _spread(results: Results, setting: Setting, name: str, seeds: dict[int, Draws], n: int) -> None:
    for seed, draws in seeds.items():
        results.put(replace(setting, seed=seed), name, from_draws(draws, n, METHODS[name]))
    deviation = float(np.std([draws[0] for draws in seeds.values()], ddof=1))
    method = f"sample standard deviation over seeds {', '.join(map(str, seeds))}"
    results.put(setting, f"{name}_sd", Estimate(deviation, None, None, len(seeds), method))


def _doubt(results: Results, whole: Sequence[CellDraws]) -> None:
    """Say of every setting with a cell from a busy or drifting machine that its speed is unsteady."""
    speeds = [(m.cell, float(m.draws["throughput"][0])) for m in whole]
    drift, closed = steadiness.drifts(speeds), steadiness.last_ar([m.cell for m in whole])
    of = {m.cell.cell: steadiness.doubts(m.cell, drift, closed) for m in whole}
    for setting, ids in results.sources.items():
        if texts := tuple(dict.fromkeys(text for name in ids for text in of.get(name, ()))):
            results.unsteady[setting] = texts
            said = (f"speed in doubt: {text}" for text in texts)
            results.cautions[setting] = (*results.cautions.get(setting, ()), *said)


def _slim(m: CellDraws) -> CellDraws:
    """Only what is needed after its panel is gone: point values, and the draws of both block times."""
    draws = {name: d if name.endswith("block_ms") else d[:1] for name, d in m.draws.items()}
    return replace(m, draws=draws)


def _line(m: CellDraws) -> dict[str, object]:
    keys = ("cell", "seed", "repeat", "allocation", "order", "started_at", "wall_s")
    values = {name: float(d[0]) for name, d in m.draws.items() if name in METHODS}
    return {**asdict(m.setting), **{k: getattr(m.cell, k) for k in keys}, **values}


def _blocks(whole: Sequence[CellDraws], quantity: str) -> dict[tuple[Setting, str], Draws]:
    """Block-time draws by setting and allocation, seeds averaged."""
    found: dict[tuple[Setting, str], list[Draws]] = defaultdict(list)
    for m in whole:
        if quantity in m.draws:
            found[m.setting, m.cell.allocation].append(m.draws[quantity])
    return {key: mean(draws) for key, draws in found.items()}

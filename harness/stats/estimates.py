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
from harness.stats import average, headcost, speed
from harness.stats.cell_draws import METHODS, Measured, add_speedups, measured, setting_of
from harness.stats.estimate import Draws, Estimate, Missing, from_draws, mean
from harness.stats.prompt_totals import Panel, panels
from harness.stats.results import Results
from harness.stats.setting import Setting
from sglang_specbench.errors import UserError

KEPT = ("tau", "tau_emitted", "throughput", "speedup", "block_ms")  # draws kept for averages and comparisons
SEED_SPREAD = ("tau", "throughput", "speedup")
# cells that agree in the first must agree in the second: else they are no repeats, seeds or rivals of each other
ALIKE = {
    ("target",): ("target_digest", "render", "dtype"),
    ("target", "arm"): ("draft_digest",),
    ("target", "prompt_set", "tier", "temperature", "concurrency"): (
        *("prompt_version", "prompts", "max_new_tokens", "ignore_eos", "top_p", "top_k"),
    ),
}
NO_AR = "no ok AR cell in the same allocation"


def measure(cells: pd.DataFrame, rows: pd.DataFrame, name: str, planned: Iterable[Cell] = ()) -> Results:
    """Every estimate of a run; ``cells`` and ``rows`` as `harness.store.run.load` gives them.

    ``planned`` cells that are not among ``cells`` were not run yet, and make holes as failed ones do.
    """
    cells = cells.sort_values(["started_at", "order"], kind="stable", ignore_index=True)  # targets as they were run
    _refuse_unlike(cells, name)
    results = Results(name=name, cells=cells, holes=_holes(cells, planned))
    steady = speed.steady_state(rows, dict(zip(cells.cell, cells.concurrency, strict=True)))
    whole: list[Measured] = []
    for panel in panels(cells, rows):
        for category in _split(panel):
            found = [measured(panel, i, category) for i in range(len(panel.cells))]
            add_speedups(found)
            if not category:
                for m in found:
                    m.draws["steady_throughput"] = np.array([steady[m.cell.cell]])
                whole += [_slim(m) for m in found]
            _settle(results, found)
    results.per_cell = pd.DataFrame([_line(m) for m in whole])
    headcost.add(results, _blocks(whole, "block_ms"), _blocks(whole, "decode_block_ms"))
    average.add(results, KEPT)
    return results


def _refuse_unlike(cells: pd.DataFrame, name: str) -> None:
    """`UserError` with key and both values where cells of one place are not the same measurement."""
    for place, keys in ALIKE.items():
        for names, group in cells.groupby(list(place)):
            for key in keys:
                values = group[key].unique()
                if len(values) > 1:
                    where = " ".join(map(str, names))
                    raise UserError(
                        f"{name}: unlike cells for {where}: {key} is {values[0]!r} in one and {values[1]!r} in another",
                        "keep them in run folders of their own",
                    )


def _holes(cells: pd.DataFrame, planned: Iterable[Cell]) -> dict[Setting, str]:
    """Settings of which a seed has no ok cell, and why."""
    outcomes: dict[Setting, dict[object, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells.itertuples():
        why = "" if cell.outcome == "ok" else f"{cell.outcome}: {cell.reason}".removesuffix(": ")
        outcomes[setting_of(cell)][cell.seed].append(why)
    known = set(cells.cell)
    for waiting in (c for c in planned if c.id not in known):
        outcomes[setting_of(waiting)][waiting.seed].append("not run yet")
    lacking = {
        setting: [f"seed {seed}: {reasons[0]}" for seed, reasons in seeds.items() if all(reasons)]
        for setting, seeds in outcomes.items()
    }
    return {setting: "; ".join(why) for setting, why in lacking.items() if why}


def _split(panel: Panel) -> list[str]:
    """The whole panel, then its categories if there are several."""
    named = sorted({str(c) for c in panel.categories} - {""})
    return ["", *named] if len(named) > 1 else [""]


def _settle(results: Results, found: Sequence[Measured]) -> None:
    """Average cells of one place over repeats, then seeds, and enter them."""
    groups: dict[Setting, list[Measured]] = defaultdict(list)
    for m in found:
        groups[m.setting].append(m)
    for setting, group in groups.items():
        hole = results.holes.get(replace(setting, category=""))
        if hole:
            results.holes[setting] = hole
        else:
            _enter(results, setting, group)


def _enter(results: Results, setting: Setting, group: Sequence[Measured]) -> None:
    n = group[0].prompts
    for name, method in METHODS.items():
        seeds = _by_seed(group, name)
        if not seeds:
            continue
        average_of_seeds = mean(list(seeds.values()))
        results.put(setting, name, from_draws(average_of_seeds, n, method))
        if name in KEPT and not setting.category:
            results.draws[setting, name] = average_of_seeds
        if name in SEED_SPREAD and len(seeds) > 1 and not setting.category:
            _spread(results, setting, name, seeds, n)
    if setting.arm != "ar" and (setting, "speedup") not in results.values:
        hole = results.holes.get(replace(setting.of("ar"), category=""))
        results.put(setting, "speedup", Missing(f"{NO_AR}{f' ({hole})' if hole else ''}"))
    results.sources[setting] = tuple(m.cell.cell for m in group)
    notes = (caution for m in group for caution in (*m.cell.cautions, m.note))
    results.cautions[setting] = tuple(dict.fromkeys(filter(None, notes)))


def _by_seed(group: Sequence[Measured], name: str) -> dict[int, Draws]:
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


def _slim(m: Measured) -> Measured:
    """Only what is needed after its panel is gone: point values, and the draws of both block times."""
    draws = {name: d if name.endswith("block_ms") else d[:1] for name, d in m.draws.items()}
    return replace(m, draws=draws)


def _line(m: Measured) -> dict[str, object]:
    keys = ("cell", "seed", "repeat", "allocation", "order", "started_at", "wall_s")
    values = {name: float(d[0]) for name, d in m.draws.items() if name in METHODS}
    return {**asdict(m.setting), **{k: getattr(m.cell, k) for k in keys}, **values}


def _blocks(whole: Sequence[Measured], quantity: str) -> dict[tuple[Setting, str], Draws]:
    """Block-time draws by setting and allocation, seeds averaged."""
    found: dict[tuple[Setting, str], list[Draws]] = defaultdict(list)
    for m in whole:
        if quantity in m.draws:
            found[m.setting, m.cell.allocation].append(m.draws[quantity])
    return {key: mean(draws) for key, draws in found.items()}

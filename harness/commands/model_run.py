"""The half of `specbench model` that reads runs: residuals of a run, its survival curves, its fixed time a pass.

Knows which targets of a run a preset is for; numbers come from harness.speedup_model.
"""

from pathlib import Path
from typing import Any

from harness.load_results import load_results
from harness.paper import published
from harness.speedup_model import batch_speedup, budget, presets, roofline, widths
from harness.speedup_model import predict as prediction
from harness.speedup_model.answers import Lines, Tables, assumptions
from harness.speedup_model.predict import Prediction, overhead_ms, predictions, residuals
from harness.speedup_model.question import Question
from harness.speedup_model.run_answers import ASSUMES, budget_line, fit_line, slot_lines, width_line, width_lines
from harness.speedup_model.run_survival import survivals
from harness.stats import closure
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import AVERAGE
from harness.store import run as store
from sglang_specbench.arms import get_arm
from sglang_specbench.errors import UserError

BATCHES_OF_BUDGET = (1, 8, 32, 128)


def run_tables(run: str, question: Question) -> Tables:
    """Predicted against measured, with the largest residual by name; a measured run's residuals part by part.

    A run whose targets have no preset is compared with its own decode times only; that is said.
    """
    results = load_results(run)
    parts = closure_lines(results)
    if parts and not question.target and not _known(results):
        found: Tables = {"no roofline": [{"why": f"no preset for {', '.join(results.targets())}; name one: --target"}]}
        texts: list[str] = []
    else:
        by_target = predictions_by_target(run, results, question)
        found = {
            "predicted against measured": [_line(p) for each in by_target.values() for p in each],
            "largest residuals": worst_lines(by_target),
        }
        texts = [*prediction.ASSUMES, *roofline.ASSUMES]
    texts += left_out(results)
    if parts:
        found["parts of the residual against the run's own decode times, %"] = parts
        found["largest parts"] = [largest_part(parts)]
        texts += [f"{name}: {method}" for name, method in closure.METHODS.items()]
    return {**found, "assumptions": assumptions(texts)}


def left_out(results: Results) -> list[str]:
    """Planned settings without numbers, and why: the first twenty, and how many more."""
    holes = [f"left out: {setting}: {why}" for setting, why in results.holes.items() if setting.arm != "ar"]
    more = [f"left out: {len(holes) - 20} more settings without numbers"] if len(holes) > 20 else []
    return holes[:20] + more


def measured_lines(run: str, target: str, hardware: str, context: int) -> Lines:
    """Every setting of the run by the preset of its target's name, or by ``target`` where that is none.

    With ``target``, targets that have another preset of their own are left out.
    """
    question = Question(target=target, hardware=hardware, context=context)
    return [_line(p) for each in predictions_by_target(run, load_results(run), question).values() for p in each]


def worst_lines(by_target: dict[str, list[Prediction]]) -> Lines:
    """For each target and temperature: how many settings, the median and the largest residual, and where that is."""
    lines = []
    for target, found in by_target.items():
        for temperature in sorted({p.setting.temperature for p in found}):
            part = residuals([p for p in found if p.setting.temperature == temperature])
            if part:
                lines.append(
                    {
                        "target": target,
                        "T": f"{temperature:g}",
                        "settings": part.count,
                        "median |residual| %": 100 * part.median,
                        "largest %": 100 * part.worst.residual,
                        "at": str(part.worst.setting),
                    }
                )
    return lines


def closure_lines(results: Results) -> Lines:
    """A measured run's ``100 ln(measured / predicted)`` and the shares that explain it, by setting."""
    names = ("residual", *(f"residual_{factor}" for factor in closure.FACTORS), "residual_rest")
    lines = []
    for setting in results.settings():
        values = [results.get(setting, name) for name in names]
        if not all(isinstance(value, Estimate) for value in values) or setting.arm == "ar":
            continue
        numbers = [value.value for value in values if isinstance(value, Estimate)]
        if setting.benchmark != AVERAGE:
            lines.append({"setting": str(setting), **dict(zip(names, numbers, strict=True))})
    return lines


def largest_part(lines: Lines) -> dict[str, Any]:
    """The part of the residual that is largest in size, over all settings."""
    parts = [(abs(value), name, line) for line in lines for name, value in line.items() if name.startswith("residual_")]
    _, name, line = max(parts, key=lambda part: part[0])
    return {"part": name.removeprefix("residual_"), "%": line[name], "at": line["setting"]}


def survival_tables(where: str, question: Question) -> Tables:
    """Fits, widths and budgets from the survival that a run measured; ``where`` is RUN:ARM."""
    run, colon, arm = where.rpartition(":")
    if not colon or not run:
        raise UserError(f"model: --survival {where!r} names no arm", "write RUN:ARM")
    if run == published.NAME:
        raise UserError("model: --survival: 'paper' printed no survival curves", "name a measured run")
    if not get_arm(arm, "model: --survival").algorithm:
        raise UserError(f"model: --survival: {arm} drafts nothing", "name a drafting arm")
    results = load_results(run)
    found = survivals(results, store.load(Path(run)).rows, arm)
    if not found:
        raise UserError(f"model: --survival: {run} has no acceptance of {arm}", f"it has {', '.join(results.arms())}")
    costs = {len(s.draws): question.costs(len(s.draws)) for s in found}
    greedy = [s for s in found if s.setting.temperature == 0]
    budgets = [budget_line(s, costs[len(s.draws)], b) for s in found for b in BATCHES_OF_BUDGET]
    tables: Tables = {
        f"acceptance of {arm}, models fitted": [fit_line(s, results, costs[len(s.draws)]) for s in found],
        f"slot by slot: {found[0].setting}": slot_lines(found[0]),
    }
    if greedy:
        tables["best verification width (T=0)"] = [width_line(s, costs[len(s.draws)]) for s in greedy]
        tables[f"every width: {greedy[0].setting}"] = width_lines(greedy[0], costs[len(greedy[0].draws)])
    tables["how much to verify"] = budgets
    left_out = [f"left out: {s}: {why}" for s, why in results.holes.items() if s.arm == arm]
    own = [f"costs: {costs[len(found[0].draws)].source}", f"draft: {widths.draft_note(arm)}", *left_out]
    models = (*roofline.ASSUMES, *batch_speedup.ASSUMES) if question.target else ()
    return {**tables, "assumptions": assumptions(ASSUMES, widths.ASSUMES, budget.ASSUMES, own, models)}


def fixed_seconds(t0: str, question: Question) -> float:
    """``t0`` in milliseconds, or the run in which autoregressive decoding shows it: its median beyond the roofline."""
    try:
        value = float(t0)
    except ValueError:
        pass
    else:
        if value < 0 or value != value or value == float("inf"):
            raise UserError(
                f"model: --t0 {t0}: a pass takes no negative or endless time", "give milliseconds, or a run"
            )
        return value / 1000
    if not question.target:
        raise UserError("model: --t0 RUN needs a roofline to compare with", "name the run's target with --target")
    by_target = predictions_by_target(t0, load_results(t0), question)
    value_ms = overhead_ms([p for each in by_target.values() for p in each])
    if value_ms is None:
        raise UserError(f"model: --t0 {t0}: no setting with acceptance length and an AR beside it", "name another run")
    return value_ms / 1000


def _known(results: Results) -> list[str]:
    return [name for name in results.targets() if name.lower() in presets.tables("models.toml")]


def predictions_by_target(run: str, results: Results, question: Question) -> dict[str, list[Prediction]]:
    """By target, those that the question's preset or their own is for."""
    target = question.target
    nameless = [name for name in results.targets() if name not in _known(results)]
    if nameless and not target:
        raise UserError(f"model: --run {run}: its target {nameless[0]!r} is no preset", "name one with --target")
    wanted = [name for name in results.targets() if not target or name in nameless or name.lower() == target.lower()]
    if not wanted:
        raise UserError(f"model: --run {run} has no target {target!r}", f"it has {', '.join(results.targets())}")
    shapes = {name: presets.shape(target or name) for name in wanted}
    device = question.device
    return {
        name: [p for p in predictions(results, shape, device, question.context) if p.setting.target == name]
        for name, shape in shapes.items()
    }


def _line(p: Prediction) -> dict[str, Any]:
    return {
        "setting": str(p.setting),
        "tau": p.tau,
        "AR token ms": p.token_ms,
        "overhead ms": p.overhead_ms,
        "block ms": p.block_ms,
        "predicted": p.predicted,
        "measured": p.measured,
        "residual %": 100 * p.residual,
    }

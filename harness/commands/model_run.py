"""`specbench model --run`: predicted against measured, residual by residual, and the doubts of the run beside them.

Knows which targets and devices of a run a preset is for; numbers come from harness.speedup_model.
"""

from dataclasses import replace
from typing import Any

from harness.commands.model_doubts import beyond_peak, doubts_of, mark, other_device, with_doubts
from harness.load_results import load_results
from harness.speedup_model import predict as prediction
from harness.speedup_model import presets, roofline
from harness.speedup_model.answers import Lines, Tables, assumptions
from harness.speedup_model.predict import (
    Prediction,
    device_name,
    drafts_blocks,
    hardware_of,
    no_block_time,
    overhead_ms,
    predictions,
    residuals,
)
from harness.speedup_model.question import HARDWARE, Question
from harness.speedup_model.roofline import Hardware
from harness.stats import closure
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import AVERAGE
from sglang_specbench.arms import ARMS
from sglang_specbench.errors import UserError


def run_tables(run: str, question: Question) -> Tables:
    """Predicted against measured, with the largest residual by name; a measured run's residuals part by part.

    A run whose targets or device have no preset is compared with its own decode times only; that is said.
    """
    results = load_results(run)
    parts = closure_lines(results)
    why = "" if question.target or _known(results) else f"no preset for {', '.join(results.targets())}: --target"
    if not question.hardware and hardware_of(results) is None:
        why = why or f"no preset for the device {device_name(results)!r}: --hardware"
    doubts = doubts_of(results)
    if why and parts:
        found: Tables = {"no roofline": [{"why": f"{why} names one"}]}
        texts: list[str] = []
    elif why:
        raise UserError(f"model: --run {run}: {why.partition(': ')[0]}", f"name one with {why.partition(': ')[2]}")
    else:
        by_target = predictions_by_target(run, results, question)
        found = {
            "predicted against measured": [
                {**_line(p), "setting": mark(results, p.setting)} for each in by_target.values() for p in each
            ],
            "largest residuals": worst_lines(by_target),
        }
        texts = [*prediction.ASSUMES, *roofline.ASSUMES, f"{question.gpus} x {device_of(results, question).source}"]
        doubts += beyond_peak([p for each in by_target.values() for p in each])
        doubts += other_device(results, question.hardware, question.gpus)
    texts += left_out(results)
    if parts:
        found["parts of the residual against the run's own decode times, %"] = parts
        found["largest parts"] = [largest_part(parts)]
        texts += [f"{name}: {method}" for name, method in closure.METHODS.items()]
    return with_doubts({**found, "assumptions": assumptions(texts)}, doubts)


def left_out(results: Results) -> list[str]:
    """Settings without a prediction, and why: the first twenty, how many more, and the arms that draft no blocks."""
    why = {s: reason for s, reason in results.holes.items() if s.arm != "ar"}
    why |= {s: reason for s in results.settings() if not s.category and (reason := no_block_time(results, s))}
    holes = [f"left out: {setting}: {reason}" for setting, reason in why.items()]
    more = [f"left out: {len(holes) - 20} more settings without numbers"] if len(holes) > 20 else []
    others = [arm for arm in results.arms() if arm in ARMS and ARMS[arm].algorithm and not drafts_blocks(arm)]
    no_block = [f"left out of the roofline: {', '.join(others)}: no block drafters"] if others else []
    return [*holes[:20], *more, *no_block]


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
            lines.append({"setting": mark(results, setting), **dict(zip(names, numbers, strict=True))})
    return lines


def largest_part(lines: Lines) -> dict[str, Any]:
    """The part of the residual that is largest in size, over all settings."""
    parts = [(abs(value), name, line) for line in lines for name, value in line.items() if name.startswith("residual_")]
    _, name, line = max(parts, key=lambda part: part[0])
    return {"part": name.removeprefix("residual_"), "%": line[name], "at": line["setting"]}


def fixed_seconds(t0: str, question: Question) -> tuple[float, list[str]]:
    """``t0`` in milliseconds, or a run whose AR shows it (its median beyond the roofline), with that run's doubts."""
    try:
        value = float(t0)
    except ValueError:
        pass
    else:
        if value < 0 or value != value or value == float("inf"):
            raise UserError(
                f"model: --t0 {t0}: a pass takes no negative or endless time", "give milliseconds, or a run"
            )
        return value / 1000, []
    if not question.target:
        raise UserError("model: --t0 RUN needs a roofline to compare with", "name the run's target with --target")
    results = load_results(t0)
    question = replace(question, hardware=question.hardware or HARDWARE)
    by_target = predictions_by_target(t0, results, question)
    value_ms = overhead_ms([p for each in by_target.values() for p in each])
    if value_ms is None:
        raise UserError(f"model: --t0 {t0}: no setting with acceptance length and an AR beside it", "name another run")
    texts = [*doubts_of(results), *other_device(results, question.hardware, question.gpus)]
    return value_ms / 1000, [f"t0, from {t0}: {text}" for text in texts]


def _known(results: Results) -> list[str]:
    return [name for name in results.targets() if name.lower() in presets.tables("models.toml")]


def device_of(results: Results, question: Question) -> Hardware:
    """The hardware asked for; else the run's own, if it has a preset, with the GPUs asked for."""
    own = None if question.hardware else hardware_of(results)
    return question.device if own is None else replace(own, gpus=question.gpus)


def predictions_by_target(run: str, results: Results, question: Question) -> dict[str, list[Prediction]]:
    """By target, those that the question's preset or their own is for."""
    target = question.target
    nameless = [name for name in results.targets() if name not in _known(results)]
    if nameless and not target:
        raise UserError(f"model: --run {run}: its target {nameless[0]!r} is no preset", "name one with --target")
    wanted = [name for name in results.targets() if not target or name in nameless or name.lower() == target.lower()]
    if not wanted:
        raise UserError(f"model: --run {run} has no target {target!r}", f"it has {', '.join(results.targets())}")
    shapes = {name: question.split(presets.shape(target or name), target or name) for name in wanted}
    device = device_of(results, question)
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

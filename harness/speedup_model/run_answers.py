"""What a run's own survival says: the fits of its curve, every width, how much to verify, and the way back to alpha.

Knows how an answer is laid out; survival curves and costs come from the caller.
"""

from typing import Any

import numpy as np

from harness.speedup_model import budget, widths
from harness.speedup_model.acceptance_models import (
    ASSUMES_INDEPENDENT,
    alpha_of,
    fitted_alpha,
    fitted_markov,
    markov_survival,
    miss,
    reached,
    wilson,
)
from harness.speedup_model.answers import NO_ROOM, Lines
from harness.speedup_model.costs import Costs
from harness.speedup_model.run_survival import RunSurvival
from harness.speedup_model.speedup import expected_tokens, iid_survival
from harness.stats.estimate import Estimate, Missing, from_draws
from harness.stats.results import Results

ASSUMES = (
    f"independent: {ASSUMES_INDEPENDENT}; Wilson counts every draft as one trial, the bootstrap draws whole prompts",
    "Markov: the first draft has a chance of its own, later ones another, given the one before",
)

BUDGET_COLUMNS = (
    "verify all",
    "best width for all",
    "speedup",
    "slots a row, by prompt",
    "speedup by prompt",
    "gain over all %",
)


def fit_line(found: RunSurvival, results: Results, costs: Costs) -> dict[str, Any]:
    """Alpha with both intervals, what each model makes of tau, and the alpha that the measured speedup implies."""
    curve, drafted = found.curve, len(found.draws)
    alpha = from_draws(fitted_alpha(found.draws), found.prompts, "accepted / reached drafts")
    if isinstance(alpha, Missing):
        return {"setting": str(found.setting), "alpha": alpha.reason}
    first, again = (float(x) for x in fitted_markov(curve))
    trials = found.blocks * float(reached(curve))
    independent = miss(iid_survival(alpha.value, drafted), curve)
    markov = miss(markov_survival(first, 0.0 if np.isnan(again) else again, drafted), curve)
    return {
        "setting": str(found.setting),
        "tau": expected_tokens(list(curve)),
        "alpha": alpha.value,
        "bootstrap": _interval(alpha.low, alpha.high),
        "Wilson": _interval(*wilson(trials * alpha.value, trials)),
        "tau, independent": independent.tokens,
        "worst slot": f"{independent.slot}: {independent.error:+.3f}",
        "first": first,
        "again": again,
        "tau, Markov": markov.tokens,
        "worst slot, Markov": f"{markov.slot}: {markov.error:+.3f}",
        "alpha by speedup": _alpha_by_speedup(found, results, costs),
    }


def _alpha_by_speedup(found: RunSurvival, results: Results, costs: Costs) -> str:
    """The alpha at which the model gives the measured speedup; its interval from the speedup's, which it rises with."""
    gained = results.get(found.setting, "speedup")
    if isinstance(gained, Missing):
        return gained.reason
    drafted = len(found.draws)
    cost = costs.block(found.setting.concurrency, drafted + 1)
    low, value, high = (
        None if gain is None else alpha_of(gain, lambda a: expected_tokens(iid_survival(a, drafted)) / cost)
        for gain in (gained.low, gained.value, gained.high)
    )
    if value is None:
        return f"none: {gained.value:.3g} is outside {1 / cost:.3g} to {(drafted + 1) / cost:.3g}"
    return f"{value:.3f} {_interval(low, high)}".strip()


def slot_lines(found: RunSurvival) -> Lines:
    """The measured curve slot by slot beside the two models."""
    drafted = len(found.draws)
    alpha = float(fitted_alpha(found.curve))
    first, again = (float(x) for x in fitted_markov(found.curve))
    chain = markov_survival(first, 0.0 if np.isnan(again) else again, drafted)
    lines: Lines = []
    for k, (measured, plain, markov) in enumerate(zip(found.draws, iid_survival(alpha, drafted), chain, strict=True)):
        estimate = from_draws(measured, found.prompts, "survival")
        interval = _interval(estimate.low, estimate.high) if isinstance(estimate, Estimate) else ""
        lines.append(
            {"slot": k + 1, "measured": float(measured[0]), "interval": interval, "alpha^k": plain, "Markov": markov}
        )
    return lines


def width_line(found: RunSurvival, costs: Costs) -> dict[str, Any]:
    """The best width of one setting."""
    batch = found.setting.concurrency
    every = widths.every_width(found.draws, found.prompts, lambda width: costs.block(batch, width))
    best, low, high = widths.best_width(every)
    full = every[-1]
    return {
        "setting": str(found.setting),
        "best width": best.width,
        "in 95 % of draws": f"{low} to {high}" if found.prompts > 1 else "one prompt",
        "tau": _shown(best.tau),
        "tau, histogram cut": best.tau_cut,
        "speedup": _shown(best.speedup),
        f"at width {full.width}": _shown(full.speedup),
    }


def width_lines(found: RunSurvival, costs: Costs) -> Lines:
    """Every width of one setting."""
    batch = found.setting.concurrency
    return [
        {
            "width": w.width,
            "tau": _shown(w.tau),
            "tau, histogram cut": w.tau_cut,
            "block in AR passes": costs.block(batch, w.width),
            "speedup": _shown(w.speedup),
            "best in": f"{w.best_share:.0%} of draws",
        }
        for w in widths.every_width(found.draws, found.prompts, lambda width: costs.block(batch, width))
    ]


def budget_line(found: RunSurvival, costs: Costs, batch: int) -> dict[str, Any]:
    """What scheduling verified slots would gain at ``batch``, in AR passes: one width for all, then prompt by prompt.

    The last knows each prompt's own curve from the same run, in hindsight: no confidence head that knows no more than
    the prompt can gain more. A batch that memory does not hold gains nothing.
    """
    if batch > costs.fits:
        return {"setting": str(found.setting), "batch": batch, **dict.fromkeys(BUDGET_COLUMNS, NO_ROOM)}
    steps = budget.drawn_steps(found.by_prompt, found.weights, batch)

    times = [costs.ragged(batch, slots) for slots in range(batch * len(found.draws) + 1)]
    cost = times.__getitem__  # in AR passes, each of which gives one token a row: speedup = rate / batch

    full = budget.average_step([budget.full_step(s, cost) for s in steps])
    uniform = [
        budget.average_step([budget.full_step(s, cost, w) for s in steps]) for w in range(found.draws.shape[0] + 1)
    ]
    one = max(uniform, key=lambda plan: plan.rate)
    each = budget.best_policy(steps, cost)
    values = (
        full.rate / batch,
        1 + one.slots / batch,
        one.rate / batch,
        each.slots / batch,
        each.rate / batch,
        100 * (each.rate / full.rate - 1),
    )
    return {"setting": str(found.setting), "batch": batch, **dict(zip(BUDGET_COLUMNS, values, strict=True))}


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def _shown(estimate: Estimate | Missing) -> str:
    if isinstance(estimate, Missing):
        return estimate.reason
    return f"{estimate.value:.2f}" + ("" if estimate.low is None else f" [{estimate.low:.2f}, {estimate.high:.2f}]")

"""`specbench model --survival RUN:ARM`: what the acceptance that a run measured says: fits, widths, how much to verify.

Costs come from the question (rooflines, or as stated) or from blocks measured at several widths (``--widths``): other
run folders of the arm, or numbers. Each setting then has a line of its own through its measured blocks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.commands.model_doubts import doubts_of, other_device, with_doubts
from harness.load_results import load_results
from harness.paper import published
from harness.speedup_model import budget, widths
from harness.speedup_model.answers import Tables, assumptions
from harness.speedup_model.batch_speedup import BLOCK_DRAFTER
from harness.speedup_model.costs import Costs, from_widths
from harness.speedup_model.predict import drafted_by_arm, drafts_blocks, hardware_name
from harness.speedup_model.question import HARDWARE, Question
from harness.speedup_model.run_answers import ASSUMES, budget_line, fit_line, slot_lines, width_line, width_lines
from harness.speedup_model.run_survival import RunSurvival, survivals
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from harness.stats.setting import Setting
from harness.store import run as store
from sglang_specbench.arms import get_arm
from sglang_specbench.errors import UserError

BATCHES_OF_BUDGET = (1, 8, 32, 128)
CostsOf = Callable[[RunSurvival], Costs]
MEASURED_ASSUMES = (
    "a block's time is a straight line in its width, drafting included; its own doubt is in no interval",
    "AR passes: decode time of a block over that of an AR token, both of one run",
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run whose blocks were timed; ``drafted`` of its arm, by target."""

    name: str
    results: Results
    drafted: Mapping[str, int]


def survival_tables(where: str, question: Question, measured: str = "") -> Tables:
    """``where`` is RUN:ARM; ``measured`` is what ``--widths`` says."""
    run, arm = _run_and_arm(where)
    results = load_results(run)
    found = survivals(results, store.load(Path(run)).rows, arm)
    if not found:
        raise UserError(f"model: --survival: {run} has no acceptance of {arm}", f"it has {', '.join(results.arms())}")
    question = _as_drafted(question, arm, hardware_name(results))
    doubts = doubts_of(results)
    if measured:
        costs, more = measured_costs(measured, _timed(run, results, arm), arm)
        doubts += more
    else:
        costs = lambda one: question.costs(len(one.draws))
        doubts += _other_costs(results, found, question) if question.target else []
    greedy = [s for s in found if s.setting.temperature == 0]
    # measured blocks say nothing of another batch than their own
    batches = {s.setting: (s.setting.concurrency,) if measured else BATCHES_OF_BUDGET for s in found}
    tables: Tables = {
        f"acceptance of {arm}, models fitted": [fit_line(s, results, costs(s)) for s in found],
        f"slot by slot: {found[0].setting}": slot_lines(found[0]),
    }
    if greedy:
        tables["best verification width (T=0)"] = [width_line(s, costs(s)) for s in greedy]
        tables[f"every width: {greedy[0].setting}"] = width_lines(greedy[0], costs(greedy[0]))
    tables["how much to verify"] = [budget_line(s, costs(s), b) for s in found for b in batches[s.setting]]
    left_out = [f"left out: {s}: {why}" for s, why in results.holes.items() if s.arm == arm]
    own = [f"costs: {costs(found[0]).source}", f"draft: {widths.draft_note(arm)}", *left_out]
    models = MEASURED_ASSUMES if measured else question.assumes
    texts = assumptions(ASSUMES, widths.ASSUMES, budget.ASSUMES, own, models)
    return with_doubts({**tables, "assumptions": texts}, doubts)


def _as_drafted(question: Question, arm: str, hardware: str) -> Question:
    """With passes as the arm makes them and the run's own hardware, if nothing else is said.

    `UserError` for a drafter that drafts in another way than the arm.
    """
    whole = drafts_blocks(arm)
    if question.target and not whole and get_arm(arm).algorithm != "STANDALONE":
        raise UserError(f"model: --target: no roofline for the drafts of {arm}", "state its costs: --cost, or --widths")
    if question.target and whole != (question.drafter == BLOCK_DRAFTER):
        way, remedy = ("a block in one pass", BLOCK_DRAFTER) if whole else ("token by token", "a model preset")
        raise UserError(f"model: --drafter {question.drafter}: {arm} drafts {way}", f"give --drafter {remedy}")
    parallel = whole if question.parallel is None else question.parallel
    return replace(question, parallel=parallel, hardware=question.hardware or hardware)


def _other_costs(results: Results, found: list[RunSurvival], question: Question) -> list[str]:
    """Doubts where costs are of another device or target than the acceptance, or of more sequences than fit."""
    targets = [name for name in results.targets() if name.lower() != question.target.lower()]
    others = [f"acceptance of {', '.join(targets)}, costs of {question.target}"] if targets else []
    crowded = [
        f"{one.setting}: memory holds {fits:,} sequences of {question.context:,} tokens"
        for one in found
        if one.setting.concurrency > (fits := question.costs(len(one.draws)).fits)
    ]
    return [*others, *crowded, *other_device(results, question.hardware or HARDWARE, question.gpus)]


def _run_and_arm(where: str) -> tuple[str, str]:
    run, colon, arm = where.rpartition(":")
    if not colon or not run:
        raise UserError(f"model: --survival {where!r} names no arm", "write RUN:ARM")
    if run == published.NAME:
        raise UserError("model: --survival: 'paper' printed no survival curves", "name a measured run")
    if not get_arm(arm, "model: --survival").algorithm:
        raise UserError(f"model: --survival: {arm} drafts nothing", "name a drafting arm")
    return run, arm


def measured_costs(text: str, own: Measured, arm: str) -> tuple[CostsOf, list[str]]:
    """From ``8:1.4,16:1.8`` (width:AR passes) or run folders, comma-separated; and the doubts of those runs.

    Runs, ``own`` among them, give each setting the blocks that they timed at its place. `UserError` for a width twice,
    a place that only one of them timed, and a line that cannot be.
    """
    if stated := _stated(text):
        line = _line(stated, text)
        return lambda one: line, []
    runs = [own, *(_timed(name, load_results(name), arm) for name in text.split(","))]
    doubts = [f"{run.name}: {doubt}" for run in runs[1:] for doubt in doubts_of(run.results)]
    made: dict[Setting, Costs] = {}

    def costs(one: RunSurvival) -> Costs:
        if one.setting not in made:
            made[one.setting] = _line(_passes(runs, one.setting), str(one.setting))
        return made[one.setting]

    return costs, doubts


def _stated(text: str) -> dict[int, float]:
    """Width -> AR passes; empty if the text names runs."""
    parts = [part.partition(":") for part in text.split(",")]
    if not all(width.strip().isdigit() for width, _, _ in parts):
        return {}
    try:
        found = {int(width): float(passes) for width, _, passes in parts}
    except ValueError:
        raise UserError(f"model: --widths {text!r}: no numbers", "write WIDTH:PASSES, as in 8:1.4,16:1.8") from None
    if len(found) < len(parts) or min(found) < 1 or not all(0 < passes < float("inf") for passes in found.values()):
        raise UserError(f"model: --widths {text}: a width twice, or no time", "write WIDTH:PASSES, as in 8:1.4,16:1.8")
    return found


def _timed(name: str, results: Results, arm: str) -> Measured:
    if results.cells is None:
        raise UserError(f"model: --widths: {name!r} printed no decode times", "name measured runs")
    drafted = {target: drafted for (target, own), drafted in drafted_by_arm(results).items() if own == arm}
    if not drafted:
        raise UserError(f"model: --widths: {name} has no ok cell of {arm}", f"it has {', '.join(results.arms())}")
    return Measured(name=name, results=results, drafted=drafted)


def _passes(runs: list[Measured], setting: Setting) -> dict[int, float]:
    """Width -> decode time of a block over that of an AR token, of the runs that timed both at ``setting``."""
    found: dict[int, float] = {}
    for run in runs:
        block = run.results.get(setting, "decode_block_ms")
        token = run.results.get(setting.of("ar"), "decode_token_ms")
        if isinstance(block, Estimate) and isinstance(token, Estimate):
            width = run.drafted[setting.target] + 1
            if width in found:
                raise UserError(f"model: --widths: {run.name}: width {width} is there already", "name other widths")
            found[width] = block.value / token.value
    return found


def _line(passes: Mapping[int, float], where: str) -> Costs:
    try:
        return from_widths(passes)
    except ValueError as error:
        widths_found = ", ".join(f"{width}: {value:.3g}" for width, value in sorted(passes.items())) or "none"
        raise UserError(
            f"model: --widths: {where}: {error} (AR passes by width: {widths_found})", "name runs of other widths"
        ) from None

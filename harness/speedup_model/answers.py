"""The tables of `specbench model`: one line a dict, name -> number or words, ready to print or to dump.

Knows the model's questions and how an answer is laid out; numbers come from the modules beside it. Every answer ends in
its assumptions.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from harness.speedup_model import batch_speedup, roofline
from harness.speedup_model.acceptance_models import ASSUMES_INDEPENDENT, alpha_of
from harness.speedup_model.batch_speedup import Block, DrafterShape, block, gain, gain_at_any_batch, sequences_that_fit
from harness.speedup_model.experts import experts_added, experts_touched, tokens_to_touch
from harness.speedup_model.roofline import (
    SCAN,
    Hardware,
    cheap_batches,
    critical_context,
    free_batch,
    least_dear_batch,
    step,
)
from harness.speedup_model.shape import Shape
from harness.speedup_model.speedup import best_length, expected_tokens, iid_survival, speedup
from sglang_specbench.errors import UserError

Lines = list[dict[str, Any]]
Tables = dict[str, Lines]
Cost = Callable[[int], float]
LONGEST = 64  # drafted tokens that the best length is looked for in
NO_ROOM = "does not fit"  # into memory, in place of a speedup
NEARLY = 0.1  # verification counts as nearly free below this share of an AR pass


def assumptions(*parts: Iterable[str]) -> Lines:
    """One line an assumption, each once."""
    return [{"assumes": text} for text in dict.fromkeys(text for part in parts for text in part)]


def block_lines(alpha: float, drafted: int, draft: Cost, verify: Cost) -> Lines:
    """The block asked for, and the length that pays best: its name says so where the search only ended there."""
    best, _ = best_length(iid_survival(alpha, LONGEST), draft, verify)
    name = "best" if best < LONGEST else f"longest tried ({LONGEST}): longer is better still"
    return [
        {
            "block": name,
            "drafted": length,
            "expected tokens": expected_tokens(survival),
            "speedup": speedup(survival, draft, verify),
        }
        for name, length in (("asked for", drafted), (name, best))
        for survival in [iid_survival(alpha, length)]
    ]


def alpha_lines(measured: float, drafted: int, draft: Cost, verify: Cost) -> Lines:
    """The chance of a draft that a measured speedup implies; `UserError` for a speedup that no chance explains."""

    def rising(alpha: float) -> float:
        return speedup(iid_survival(alpha, drafted), draft, verify)

    if not drafted:
        raise UserError("model: --speedup: no drafted token says nothing of alpha", "give --drafted 1 or more")
    alpha = alpha_of(measured, rising)
    if alpha is None:
        limits = f"{rising(0):.3g} to {rising(1):.3g}"
        raise UserError(
            f"model: --speedup {measured:g}: {drafted} drafts at this cost give {limits}", "fix --drafted or the costs"
        )
    return [{"speedup": measured, "drafted": drafted, "alpha": alpha, "tokens a block": rising(alpha) / rising(0)}]


def regime_lines(name: str, shape: Shape, device: Hardware, positions: int, context: int, t0_s: float) -> Lines:
    """Where verifying ``positions`` stops being free; of a mixture, where it is dear and where nearly free."""
    end = free_batch(shape, device, positions, context)
    line: dict[str, Any] = {
        "model": name,
        "positions": positions,
        "critical context": "none" if math.isinf(limit := critical_context(shape, device, positions)) else limit,
        "context": context,
    }
    if not shape.experts:
        return [{**line, "free up to batch": "any" if end is None else end}]
    cheap = cheap_batches(shape, device, positions, context, NEARLY, t0_s)
    dear = [step(shape, device, 1, n, context, t0_s).seconds for n in (positions, 1)]
    cheapest, ratio = least_dear_batch(shape, device, positions, context, t0_s)
    return [
        {
            **line,
            "memory-bound up to batch": "any" if end is None else end,
            "a verification at batch 1, in AR passes": dear[0] / dear[1],
            "at its cheapest": ratio,
            "which is batch": cheapest,
            f"within {NEARLY:.0%} of one from batch": "none" if cheap is None else cheap[0],
            "to batch": "none" if cheap is None else "any" if cheap[1] >= SCAN - 1 else cheap[1],
        }
    ]


def expert_lines(
    shape: Shape, device: Hardware, batches: Sequence[int], positions: int, context: int, t0_s: float
) -> Lines:
    """Of a mixture: the experts a layer reads in a pass of one position and of ``positions``, and what that costs."""
    turn = tokens_to_touch(shape.experts, shape.routed, 1 - NEARLY)
    return [
        {
            "batch": batch,
            "experts read, AR": experts_touched(shape.experts, shape.routed, batch),
            "experts read, verification": experts_touched(shape.experts, shape.routed, batch * positions),
            "added by one more token": experts_added(shape.experts, shape.routed, batch * positions),
            "verification / AR": step(shape, device, batch, positions, context, t0_s).seconds
            / step(shape, device, batch, 1, context, t0_s).seconds,
            f"most read (from {turn} tokens)": "yes" if batch * positions >= turn else "no",
        }
        for batch in batches
    ]


def pass_lines(
    shape: Shape, device: Hardware, batches: Sequence[int], positions: int, context: int, t0_s: float
) -> Lines:
    """The parts of a pass by batch, in milliseconds."""
    return [
        {"batch": b, **{k.replace("_s", " ms"): 1000 * v for k, v in asdict(s).items()}, "ms": 1000 * s.seconds,
         "regime": s.regime}
        for b in batches
        for s in [step(shape, device, b, positions, context, t0_s)]
    ]  # fmt: skip


def batch_lines(
    survival: Sequence[float],
    target: Shape,
    drafting: DrafterShape,
    device: Hardware,
    batches: Sequence[int],
    context: int,
    t0_s: float,
) -> Lines:
    """S(B): a line a batch, in milliseconds; a batch that memory does not hold has no speedup; then the limit."""
    fits = sequences_that_fit(target, drafting, device, context + len(survival) + 1)
    found = [block(target, drafting, device, batch, len(survival), context, t0_s) for batch in batches]
    lines = [_batch_line(b, gain(survival, b) if b.batch <= fits else None) for b in found]
    limit = gain_at_any_batch(survival, target, drafting, device, context)
    blank = dict.fromkeys(lines[0], "")
    return [*lines, {**blank, "batch": "limit, memory aside", "speedup": limit}]


def _batch_line(found: Block, value: float | None) -> dict[str, Any]:
    return {
        "batch": found.batch,
        "AR ms": 1000 * found.ar.seconds,
        "draft ms": 1000 * found.draft_s,
        "verify ms": 1000 * found.verify.seconds,
        "block in AR passes": found.cost,
        "speedup": NO_ROOM if value is None else value,
        "regime": found.regime,
    }


def memory_lines(target: Shape, drafting: DrafterShape, device: Hardware, context: int) -> Lines:
    """Weights, cache and how many sequences fit, with and without the drafter."""
    return [
        {
            "GPUs": device.gpus,
            "weights GB": target.own_bytes / 1e9,
            "drafter GB": drafting.shape.own_bytes / 1e9,
            "cache KB a token": (target.kv_bytes + drafting.shape.kv_bytes) / 1e3,
            "sequences that fit": sequences_that_fit(target, drafting, device, context),
            "without drafter": sequences_that_fit(target, None, device, context),
            "GPUs for the weights": batch_speedup.gpus_for_weights(target, device),
        }
    ]


BLOCK_ASSUMES = (ASSUMES_INDEPENDENT, "costs are constant, in passes of the target")
BATCH_ASSUMES = (*roofline.ASSUMES, *batch_speedup.ASSUMES)

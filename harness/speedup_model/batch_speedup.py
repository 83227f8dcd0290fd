"""S(B): what a block is worth at a batch and a context, from the rooflines of target and drafter.

Knows shapes, hardware and a survival curve; not measurements. A block is one verification of drafted + 1 positions and
the drafter's passes: a *parallel* drafter makes one over the same positions, a *token by token* one makes one a drafted
token. Autoregressive decoding makes one target pass a token. Every pass pays the fixed cost t0.

    S(B) = tokens a block * t_AR(B) / (t_draft(B) + t_verify(B))

For B to infinity weights and t0 no longer count, and S tends to tokens * growth of AR / growth of the block.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.speedup_model import presets
from harness.speedup_model.roofline import Hardware, Step, growth, step
from harness.speedup_model.shape import Shape
from harness.speedup_model.speedup import expected_tokens
from sglang_specbench.errors import UserError

BLOCK_DRAFTER = "block"  # as a drafter's name: the common backbone of the block drafters
USABLE = 0.9  # of device memory; the rest holds activations, graphs and the runtime
ASSUMES = (
    "acceptance does not depend on batch or context",
    "a drafter's head costs nothing beyond its backbone",
    f"{USABLE:.0%} of device memory holds weights and caches",
    "decoding only: no prefill, no queueing, the same context for every sequence",
)


@dataclass(frozen=True, kw_only=True)
class DrafterShape:
    """What drafts: its shape, and whether one pass drafts the whole block."""

    shape: Shape
    parallel: bool


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block at a batch: its two halves and what it is set against, in seconds of the whole batch."""

    batch: int
    ar: Step
    verify: Step
    draft: Step  # one pass
    draft_s: float  # all passes

    @property
    def cost(self) -> float:
        """Time of a block in autoregressive passes."""
        return (self.draft_s + self.verify.seconds) / self.ar.seconds

    @property
    def regime(self) -> str:
        """Of plain decoding and of verification: ``weights``, ``kv`` or ``arithmetic``; one word where they agree."""
        both = dict.fromkeys((self.ar.regime, self.verify.regime))
        return " -> ".join(both)


def block_drafter(target: Shape, layers: int = 5) -> Shape:
    """The common backbone of the block drafters: ``layers`` of the target's kind, its output head, a projection.

    The projection takes as many captured hidden states as there are layers (five of each in the paper's set-up). The
    output head is read in every pass but lies in the target's memory. A mixture's drafter is dense: its layers are as
    wide as the experts that one token uses.
    """
    width = target.intermediate if not target.experts else (target.routed + target.shared) * target.expert_intermediate
    return replace(
        target,
        layers=layers,
        intermediate=width,
        experts=0,
        routed=0,
        shared=0,
        dense_layers=0,
        tied=True,
        projection=layers * target.hidden**2,
        borrowed=target.vocabulary * target.hidden,
    )


def drafter(name: str, target: Shape) -> DrafterShape:
    """``block``, or a model preset that drafts token by token; `UserError` for another name, and other vocabulary."""
    if name == BLOCK_DRAFTER:
        return DrafterShape(shape=block_drafter(target), parallel=True)
    shape = presets.shape(name, "--drafter", [BLOCK_DRAFTER])
    if shape.vocabulary != target.vocabulary:
        sizes = f"{shape.vocabulary:,} tokens, the target {target.vocabulary:,}"
        raise UserError(f"--drafter {name}: its vocabulary has {sizes}", "name a drafter that shares the target's")
    return DrafterShape(shape=shape, parallel=False)


def block(
    target: Shape,
    drafting: DrafterShape,
    hardware: Hardware,
    batch: int,
    drafted: int,
    context: float,
    t0_s: float = 0.0,
) -> Block:
    """The passes of a block of ``drafted`` + 1 positions."""
    positions = drafted + 1
    draft = step(drafting.shape, hardware, batch, positions if drafting.parallel else 1, context, t0_s)
    passes = min(1, drafted) if drafting.parallel else drafted
    return Block(
        batch=batch,
        ar=step(target, hardware, batch, 1, context, t0_s),
        verify=step(target, hardware, batch, positions, context, t0_s),
        draft=draft,
        draft_s=passes * draft.seconds,
    )


def gain(survival: Sequence[float], found: Block) -> float:
    """S(B); the block must have been made for ``len(survival)`` drafts."""
    return expected_tokens(survival) / found.cost


def gain_at_any_batch(
    survival: Sequence[float], target: Shape, drafting: DrafterShape, hardware: Hardware, context: float
) -> float:
    """The limit of S(B) for B to infinity, memory aside."""
    drafted = len(survival)
    positions, passes = (drafted + 1, min(1, drafted)) if drafting.parallel else (1, drafted)
    drafts = passes * growth(drafting.shape, hardware, positions, context)
    verification = growth(target, hardware, drafted + 1, context)
    return expected_tokens(survival) * growth(target, hardware, 1, context) / (drafts + verification)


def sequences_that_fit(target: Shape, drafting: DrafterShape | None, hardware: Hardware, context: float) -> int:
    """Sequences of ``context`` cached tokens that memory holds beside the weights; 0 where the weights do not fit."""
    shapes = [target] + ([drafting.shape] if drafting else [])
    free = USABLE * hardware.memory - sum(shape.own_bytes for shape in shapes) / hardware.gpus
    each = context * sum(shape.kv_bytes * shape.cache_share(hardware.gpus) for shape in shapes)
    if free <= 0:
        return 0
    return int(free / each) if each else 1 << 20


def gpus_for_weights(target: Shape, hardware: Hardware) -> int:
    """GPUs that hold the target's weights."""
    return -int(-target.own_bytes // (USABLE * hardware.memory))

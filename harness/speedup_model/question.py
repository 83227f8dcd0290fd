"""One question to the model: acceptance, block and costs as the user gave them, and the tables that answer it.

Knows presets by name and which numbers go together. Runs are read elsewhere (harness.commands.model_run).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.speedup_model import answers, costs, presets
from harness.speedup_model.answers import BATCH_ASSUMES, BLOCK_ASSUMES, NO_ROOM, Tables, assumptions
from harness.speedup_model.batch_speedup import BLOCK_DRAFTER, DrafterShape, drafter
from harness.speedup_model.roofline import Hardware
from harness.speedup_model.shape import Shape
from harness.speedup_model.speedup import (
    autoregressive_draft,
    iid_survival,
    linear_verification,
    parallel_draft,
)
from sglang_specbench.errors import UserError

HARDWARE = "h100"
DRAFTED = 4  # where nothing is said
DRAFTED_ON_A_TARGET = 3  # a pass of four positions: the worked numbers of docs/theory.md


@dataclass(frozen=True, kw_only=True)
class Question:
    """``drafted`` and ``parallel`` are None, and ``hardware`` empty, where the user left it open."""

    alpha: float = 0.8
    drafted: int | None = None
    cost: float = 0.05
    parallel: bool | None = None
    slope: float = 0.0
    target: str = ""
    drafter: str = BLOCK_DRAFTER
    hardware: str = ""
    gpus: int = 1
    batches: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    context: int = 512
    t0_s: float = 0.0

    @classmethod
    def asked(cls, *, drafted: int | None, positions: int | None, **rest: object) -> "Question":
        """With either of ``drafted`` and ``positions``; `UserError` if both are given and do not agree."""
        if None not in (drafted, positions) and drafted + 1 != positions:  # type: ignore[operator]
            raise UserError(
                f"model: --drafted {drafted} makes {drafted + 1} positions, not {positions}",  # type: ignore[operator]
                "give one of them",
            )
        return cls(drafted=drafted if positions is None else positions - 1, **rest)  # type: ignore[arg-type]

    def with_t0(self, seconds: float) -> "Question":
        """The same, every pass paying ``seconds`` more."""
        return replace(self, t0_s=seconds)

    @property
    def block(self) -> int:
        """Drafted tokens a block."""
        return self.drafted if self.drafted is not None else DRAFTED_ON_A_TARGET if self.target else DRAFTED

    @property
    def shape(self) -> Shape:
        """The target's."""
        return self.split(presets.shape(self.target), self.target)

    @property
    def device(self) -> Hardware:
        """The hardware, all its GPUs."""
        return replace(presets.hardware(self.hardware or HARDWARE), gpus=self.gpus)

    @property
    def drafting(self) -> DrafterShape:
        """The target's drafter."""
        found = drafter(self.drafter, self.shape)
        return replace(found, shape=self.split(found.shape, self.drafter))

    def split(self, shape: Shape, name: str) -> Shape:
        """``shape``, if its attention heads can be shared out among the GPUs, as tensor parallel serving demands."""
        if shape.heads % self.gpus:
            raise UserError(
                f"model: --gpus {self.gpus} cannot share the {shape.heads} attention heads of {name}", "give a divisor"
            )
        return shape

    @property
    def passes(self) -> tuple[Callable[[int], float], Callable[[int], float]]:
        """Draft and verification in target passes, as the user stated them."""
        draft = parallel_draft(self.cost) if self.parallel else autoregressive_draft(self.cost)
        return draft, linear_verification(self.slope)

    def costs(self, drafted: int) -> costs.Costs:
        """Of a block of ``drafted``: from rooflines if a target is named, else as stated."""
        if self.target:
            return costs.from_rooflines(self.shape, self.drafting, self.device, drafted, self.context, self.t0_s)
        return costs.in_passes(drafted, *self.passes, bool(self.parallel))

    def block_tables(self) -> Tables:
        """Independent acceptance, costs as stated."""
        return {
            "independent acceptance": answers.block_lines(self.alpha, self.block, *self.passes),
            "assumptions": assumptions(BLOCK_ASSUMES[:1], self.assumes),
        }

    def alpha_tables(self, speedup: float) -> Tables:
        """The alpha that a measured speedup implies; with a target, at the first batch."""
        texts = assumptions(BLOCK_ASSUMES[:1], self.assumes)
        if not self.target:
            lines = answers.alpha_lines(speedup, self.block, *self.passes)
            return {"alpha from a speedup": lines, "assumptions": texts}
        batch, found = self.batches[0], self.costs(self.block)
        if batch > found.fits:
            raise UserError(f"model: --speedup: batch {batch} {NO_ROOM} into memory", f"{found.fits} sequences do")
        passes = found.block(batch, self.block + 1)
        lines = answers.alpha_lines(speedup, self.block, lambda drafted: 0.0, lambda drafted: passes)
        return {f"alpha from a speedup at batch {batch}": lines, "assumptions": texts}

    def roofline_tables(self) -> Tables:
        """S(B), the regimes, memory, and the parts of a verification; of a mixture also its experts."""
        shape, device, drafting = self.shape, self.device, self.drafting
        positions = self.block + 1
        survival = iid_survival(self.alpha, self.block)
        experts = (
            {"experts a layer": answers.expert_lines(shape, device, self.batches, positions, self.context, self.t0_s)}
            if shape.experts
            else {}
        )
        return {
            "regime": answers.regime_lines(self.target, shape, device, positions, self.context, self.t0_s),
            "passes of a verification": answers.pass_lines(
                shape, device, self.batches, positions, self.context, self.t0_s
            ),
            **experts,
            "memory": answers.memory_lines(shape, drafting, device, self.context + positions),
            f"speedup at alpha {self.alpha:g}, {self.block} drafted, drafter {self.drafter}": answers.batch_lines(
                survival, shape, drafting, device, self.batches, self.context, self.t0_s
            ),
            "assumptions": assumptions(BLOCK_ASSUMES[:1], self.assumes),
        }

    @property
    def assumes(self) -> tuple[str, ...]:
        """What its costs rest on, as sentences."""
        if not self.target:
            passes = "once a block" if self.parallel else "once a drafted token"
            paid = f"a draft pass takes {self.cost:g} target passes, {passes}; a verified draft adds {self.slope:g}"
            return (*BLOCK_ASSUMES[1:], paid)
        drafting = self.drafting
        passes = "a pass a block" if drafting.parallel else "a pass a drafted token"
        return (
            *BATCH_ASSUMES,
            f"{self.target}: {self._precisions(self.shape)}; attention at bf16",
            f"drafter {self.drafter}: {drafting.shape.layers} layers, {passes}, {self._precisions(drafting.shape)}",
            f"{self.gpus} x {self.device.source}; {self.context:,} cached tokens a sequence",
            f"every pass pays t0 = {1000 * self.t0_s:.3g} ms",
        )

    def _precisions(self, shape: Shape) -> str:
        has = self.device.flops
        fallen = "" if shape.arithmetic in has else f", which {self.hardware or HARDWARE} has not: run at bf16"
        return f"weights {shape.weights}, cache {shape.cache}, products {shape.arithmetic}{fallen}"

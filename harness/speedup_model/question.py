"""One question to the model: acceptance, block and costs as the user gave them, and the tables that answer it.

Knows presets by name and which numbers go together. Runs are read elsewhere (harness.commands.model_run).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.speedup_model import answers, costs, presets
from harness.speedup_model.answers import BATCH_ASSUMES, BLOCK_ASSUMES, Tables, assumptions
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
    """``drafted`` is None and ``hardware`` empty where the user left it open."""

    alpha: float = 0.8
    drafted: int | None = None
    cost: float = 0.05
    parallel: bool = False
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
        return presets.shape(self.target)

    @property
    def device(self) -> Hardware:
        """The hardware, all its GPUs."""
        return replace(presets.hardware(self.hardware or HARDWARE), gpus=self.gpus)

    @property
    def drafting(self) -> DrafterShape:
        """The target's drafter."""
        return drafter(self.drafter, self.shape)

    @property
    def passes(self) -> tuple[Callable[[int], float], Callable[[int], float]]:
        """Draft and verification in target passes, as the user stated them."""
        draft = parallel_draft(self.cost) if self.parallel else autoregressive_draft(self.cost)
        return draft, linear_verification(self.slope)

    def costs(self, drafted: int) -> costs.Costs:
        """Of a block of ``drafted``: from rooflines if a target is named, else as stated."""
        if self.target:
            return costs.from_rooflines(self.shape, self.drafting, self.device, drafted, self.context, self.t0_s)
        return costs.in_passes(drafted, *self.passes, self.parallel)

    def block_tables(self) -> Tables:
        """Independent acceptance, costs as stated."""
        return {
            "independent acceptance": answers.block_lines(self.alpha, self.block, *self.passes),
            "assumptions": assumptions(BLOCK_ASSUMES),
        }

    def alpha_tables(self, speedup: float) -> Tables:
        """The alpha that a measured speedup implies; with a target, at the first batch."""
        if not self.target:
            lines = answers.alpha_lines(speedup, self.block, *self.passes)
            return {"alpha from a speedup": lines, "assumptions": assumptions(BLOCK_ASSUMES)}
        passes = self.costs(self.block).block(self.batches[0], self.block + 1)
        lines = answers.alpha_lines(speedup, self.block, lambda drafted: 0.0, lambda drafted: passes)
        return {
            f"alpha from a speedup at batch {self.batches[0]}": lines,
            "assumptions": assumptions(BLOCK_ASSUMES[:1], BATCH_ASSUMES),
        }

    def roofline_tables(self) -> Tables:
        """S(B), the regimes, memory, and the parts of a verification; of a mixture also its experts."""
        shape, device, drafting = self.shape, self.device, self.drafting
        positions = self.block + 1
        survival = iid_survival(self.alpha, self.block)
        experts = (
            {"experts a layer": answers.expert_lines(shape, device, self.batches, positions, self.context)}
            if shape.experts
            else {}
        )
        return {
            "regime": answers.regime_lines(self.target, shape, device, positions, self.context),
            "passes of a verification": answers.pass_lines(shape, device, self.batches, positions, self.context),
            **experts,
            "memory": answers.memory_lines(shape, drafting, device, self.context + positions),
            f"speedup at alpha {self.alpha:g}, {self.block} drafted, drafter {self.drafter}": answers.batch_lines(
                survival, shape, drafting, device, self.batches, self.context, self.t0_s
            ),
            "assumptions": assumptions(BLOCK_ASSUMES[:1], BATCH_ASSUMES, self._precisions()),
        }

    def _precisions(self) -> list[str]:
        shape, device = self.shape, self.device
        fallen = "" if shape.arithmetic in device.flops else f", which {self.hardware or HARDWARE} has not: run at bf16"
        return [
            f"{self.target}: weights {shape.weights}, cache {shape.cache}, products {shape.arithmetic}{fallen}; "
            "attention at bf16",
            f"{self.gpus} x {device.source}",
            f"every pass pays t0 = {1000 * self.t0_s:.3g} ms",
        ]

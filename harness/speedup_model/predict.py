"""Predicted against measured: the roofline's speedup for every arm of a run, with what it leaves unexplained.

For each setting the model gets the measured acceptance length and the published sizes, and predicts the time:

  t_AR     roofline of one position a sequence, plus an overhead
  t_block  roofline of the verification, plus that of the drafter (one pass over as many positions), plus two overheads
  speedup  tau * t_AR / t_block

The overhead of a pass is not in any data sheet. It is calibrated on autoregressive decoding of the same run: what a
measured token takes beyond its roofline. So AR itself is no test of the model, and the other arms are. The head of an
arm is not in the model: it is part of the residual, as are prefill and queueing. Only arms that draft with a block
backbone have a prediction.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from harness.speedup_model import presets
from harness.speedup_model.batch_speedup import BLOCK_DRAFTER, block, drafter
from harness.speedup_model.roofline import Hardware, step
from harness.speedup_model.run_survival import window
from harness.speedup_model.shape import Shape
from harness.stats.estimate import Estimate, Missing
from harness.stats.results import Results
from harness.stats.setting import AVERAGE, Setting
from sglang_specbench.arms import ARMS, DRAFTED, WINDOW

ASSUMES = (
    f"acceptance length as measured; a block is one draft pass and one verification of as many positions as the arm's "
    f"server verified ({WINDOW} where it did not say)",
    "every pass pays the overhead that AR pays beyond its roofline in the same setting",
    "no prefill, no queueing, no head: they are in the residual",
)


BLOCK_ALGORITHMS = ("DFLASH", "DSPARK")  # speculative algorithms whose drafters have the common block backbone


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One arm at one setting; times in milliseconds of one stream, ``residual`` = measured / predicted - 1."""

    setting: Setting
    tau: float
    token_ms: float  # an AR token, as measured
    overhead_ms: float  # calibrated, a pass
    block_ms: float  # predicted
    predicted: float  # speedup
    measured: float  # speedup

    @property
    def residual(self) -> float:
        """What the model leaves: positive where the arm is faster than predicted."""
        return self.measured / self.predicted - 1


def predictions(results: Results, target: Shape, hardware: Hardware, context: float) -> list[Prediction]:
    """Every setting of ``results`` that has acceptance length, speedup and an AR throughput beside it."""
    drafted = drafted_by_arm(results)
    found = (
        _prediction(results, setting, target, hardware, context, drafted.get((setting.target, setting.arm), DRAFTED))
        for setting in results.settings()
        if drafts_blocks(setting.arm) and setting.benchmark != AVERAGE and not setting.category
        if not no_block_time(results, setting)
    )
    return [p for p in found if p is not None]


def no_block_time(results: Results, setting: Setting) -> str:
    """Why a measured setting has no block time (it never had as many streams as its label says); "" where it has."""
    found = None if results.cells is None else results.values.get((setting, "block_ms"))
    return found.reason if isinstance(found, Missing) else ""


def drafts_blocks(arm: str) -> bool:
    """Whether the arm's drafter is the block backbone that the roofline of a block is made for."""
    return arm in ARMS and ARMS[arm].algorithm in BLOCK_ALGORITHMS


def drafted_by_arm(results: Results) -> dict[tuple[str, str], int]:
    """Drafted tokens a block by target and arm, as the servers of ok cells attested; empty for printed results."""
    if results.cells is None:
        return {}
    ok = results.cells[results.cells.outcome == "ok"]
    return {(cell.target, cell.arm): window(cell) - 1 for cell in ok.itertuples()}


def _prediction(
    results: Results, setting: Setting, target: Shape, hardware: Hardware, context: float, drafted: int
) -> Prediction | None:
    tau, gain = results.get(setting, "tau"), results.get(setting, "speedup")
    rate, own = results.get(setting.of("ar"), "throughput"), results.get(setting, "throughput")
    if not isinstance(tau, Estimate) or not isinstance(rate, Estimate):
        return None
    if isinstance(gain, Estimate):
        measured = gain.value
    elif isinstance(own, Estimate):
        measured = own.value / rate.value
    else:
        return None
    batch = setting.concurrency
    token_ms = 1000 * batch / rate.value
    overhead_ms = max(0.0, token_ms - 1000 * step(target, hardware, batch, 1, context).seconds)
    passes = block(target, drafter(BLOCK_DRAFTER, target), hardware, batch, drafted, context, overhead_ms / 1000)
    block_ms = 1000 * (passes.draft_s + passes.verify.seconds)
    return Prediction(
        setting=setting,
        tau=tau.value,
        token_ms=token_ms,
        overhead_ms=overhead_ms,
        block_ms=block_ms,
        predicted=tau.value * token_ms / block_ms,
        measured=measured,
    )


def hardware_name(results: Results) -> str:
    """The preset of the run's device, or nothing; the paper's is an H100."""
    device = device_name(results)
    return next((name for name in presets.tables("hardware.toml") if is_device(name, device)), "")


def hardware_of(results: Results) -> Hardware | None:
    """The preset of the run's device, or None; the paper's is an H100."""
    name = hardware_name(results)
    return presets.hardware(name) if name else None


def is_device(name: str, device: str) -> bool:
    """Whether a device as its driver calls it (``NVIDIA H100 80GB HBM3``) is the hardware preset ``name``.

    The presets are SXM modules: a PCIe or NVL card has other peaks, and so has a card of another memory size.
    """
    words = re.split(r"[^a-z0-9]+", device.lower())
    sizes = [int(word.removesuffix("gb")) for word in words if re.fullmatch(r"\d+gb", word)]
    same_size = all(size == round(presets.hardware(name).memory / 1e9) for size in sizes)
    return name in words and same_size and not {"pcie", "nvl"} & set(words)


def device_name(results: Results) -> str:
    """As the run's driver calls it; an H100 for the paper's printed numbers."""
    return "H100" if results.cells is None else str(results.cells.env_device_name.iloc[0])


def gpus_of(results: Results) -> int:
    """GPUs that shared the target, as the servers resolved their arguments; one for the paper."""
    found = [] if results.cells is None else results.cells.server_args
    return max((int(args.get("tp_size", 1)) for args in found if args), default=1)


@dataclass(frozen=True, kw_only=True)
class Residuals:
    """How far a set of predictions is off; ``worst`` is the largest residual, whatever its sign."""

    count: int
    median: float  # of |measured / predicted - 1|
    worst: Prediction


def residuals(found: Sequence[Prediction]) -> Residuals | None:
    """None of nothing."""
    if not found:
        return None
    sizes = [abs(p.residual) for p in found]
    return Residuals(count=len(found), median=median(sizes), worst=max(found, key=lambda p: abs(p.residual)))


def overhead_ms(found: Sequence[Prediction]) -> float | None:
    """The median overhead of a pass: t0 as this run has it; None of nothing."""
    return median(p.overhead_ms for p in found) if found else None

"""All estimates of a run, whoever made them: measured (``measure``) or printed (``harness.paper.published``).

Tables, figures, the gate and ``compare`` read nothing else. For figures and other programs `Results.frame` gives one
quantity as a pandas frame. Quantities:

  tau, tau_emitted, tau_sglang, tau_request_mean   ``acceptance.LEDGER``
  a1 .. a15 (as wide as the drafter)               survival of slot i
  throughput, steady_throughput                    tokens/s
  speedup                                          over AR of the same allocation
  block_ms, decode_block_ms, decode_token_ms       ``speed.METHODS``
  tau_sd, throughput_sd                            sample standard deviation over seeds
  head_ms, head_share_pct, head_decode_ms          ``headcost``; benchmark = ``setting.AVERAGE``
  predicted, residual, residual_*                  ``closure``
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from harness.stats.absent import Absent
from harness.stats.estimate import Draws, Estimate, Missing
from harness.stats.setting import AVERAGE, BENCHMARKS, Setting, arm_order

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from harness.schema.cell import Cell

Key = tuple[Setting, str]


@dataclass(frozen=True, eq=False)
class PromptCounts:
    """Accepted drafts and verify blocks of one cell by prompt, turns summed; each of shape (prompts,). 0 for AR."""

    prompts: tuple[str, ...]
    correct: "NDArray[np.float64]"
    blocks: "NDArray[np.float64]"


@dataclass(kw_only=True)
class Results:
    """Estimates by (setting, quantity); ``draws`` for those that can be paired with another run's."""

    name: str
    values: dict[Key, Estimate | Missing] = field(default_factory=dict)
    draws: dict[Key, Draws] = field(default_factory=dict)
    sources: dict[Setting, tuple[str, ...]] = field(default_factory=dict)  # cell ids behind a setting
    holes: dict[Setting, str] = field(default_factory=dict)  # settings without numbers, and why
    cells: "pd.DataFrame | None" = None  # of store.load; None for the paper
    per_cell: "pd.DataFrame | None" = None  # one line per ok cell: its setting, repeat, and point values
    cautions: dict[Setting, tuple[str, ...]] = field(default_factory=dict)
    unsteady: dict[Setting, tuple[str, ...]] = field(default_factory=dict)  # why its speed cannot be trusted
    windows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # arm -> positions verified a block
    unaudited: Mapping[str, str] = field(default_factory=dict)  # arm -> unaudited, inconclusive or fail
    planned: "tuple[Cell, ...] | None" = None  # None: nothing says what the run was to measure
    absent: tuple[Absent, ...] = ()  # cells that failed, or were planned and not run
    gaps: Mapping[Setting, tuple[str, ...]] = field(default_factory=dict)  # cells that a setting's number is without
    notes: tuple[str, ...] = ()  # what every reader of the run must be told
    prompt_counts: Mapping[str, "PromptCounts"] = field(default_factory=dict)  # by id, of ok cells
    default_reason: str = "not in this run"
    _settings: dict[Setting, None] = field(default_factory=dict)  # of values, in order of entry

    def put(self, setting: Setting, quantity: str, estimate: Estimate | Missing) -> None:
        """Enter one number, or the reason why there is none."""
        self.values[setting, quantity] = estimate
        if setting.seed is None:
            self._settings[setting] = None

    def get(self, setting: Setting, quantity: str) -> Estimate | Missing:
        """The estimate, or why there is none."""
        found = self.values.get((setting, quantity))
        if found is not None:
            return found
        return Missing(self.holes.get(setting, self.default_reason))

    def settings(self) -> list[Setting]:
        """Every setting that was measured or planned, seeds aside."""
        return list(dict.fromkeys((*self._settings, *self.holes)))

    def targets(self) -> list[str]:
        """Names in order of appearance."""
        return list(dict.fromkeys(s.target for s in self.settings()))

    def arms(self, target: str | None = None) -> list[str]:
        """Arms present, in the paper's order, then the arm table's."""
        present = {s.arm for s in self.settings() if target in (None, s.target)}
        return sorted(present, key=arm_order)

    def benchmarks(self, target: str | None = None, tiers: bool = False) -> list[str]:
        """Prompt sets present, in the paper's order; only those split in tiers, or only the others."""
        present = {s.benchmark for s in self.settings() if target in (None, s.target) and bool(s.tier) == tiers}
        return _ordered(present - {AVERAGE}, BENCHMARKS)

    def frame(self, *quantities: str) -> "pd.DataFrame":
        """One line per estimate: the setting's fields, quantity, value, low, high, n, method, reason ("" if none).

        An interval or value that does not exist is NaN.
        """
        import pandas as pd

        chosen = [(s, q, e) for (s, q), e in self.values.items() if not quantities or q in quantities]
        lines = [{**asdict(s), "quantity": q, **_fields(e)} for s, q, e in chosen]
        lines += [
            {**asdict(s), "quantity": q, **_fields(Missing(why))}
            for s, why in self.holes.items()
            for q in quantities
            if (s, q) not in self.values
        ]
        return pd.DataFrame(lines)


def _ordered(present: set[str], known: Iterable[str]) -> list[str]:
    first = [name for name in dict.fromkeys(known) if name in present]
    return [*first, *sorted(present - set(first))]


def _fields(estimate: Estimate | Missing) -> dict[str, object]:
    if isinstance(estimate, Missing):
        nan = float("nan")
        return {"value": nan, "low": nan, "high": nan, "n": 0, "method": "", "reason": estimate.reason}
    return {
        "value": estimate.value,
        "low": float("nan") if estimate.low is None else estimate.low,
        "high": float("nan") if estimate.high is None else estimate.high,
        "n": estimate.n,
        "method": estimate.method,
        "reason": "",
    }

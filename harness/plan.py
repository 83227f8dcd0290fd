"""The plan: a sweep's cells in the order in which they are run, grouped by server process and by allocation.

Pure: `expand` reads nothing but its arguments. `inputs.resolve` looks at checkpoints, prompt sets and the device.

An *allocation* is what runs on one device in one go: one target, one seed, one repeat; AR first and last, and the
arms between them in an order that odd repeats reverse, so that a linear drift cancels over two repeats.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.cell import Cell
from harness.inputs import Inputs
from harness.sweep import Sweep


@dataclass(frozen=True, kw_only=True)
class PlannedLaunch:
    """The cells that one server process serves, in order."""

    id: str  # 12 hex digits over what the server is
    order: int  # place in the allocation
    target_path: str  # folder, or hub id while it is not downloaded
    draft_path: str  # "" without a drafter
    cells: tuple[Cell, ...]

    @property
    def arm(self) -> str:
        return self.cells[0].arm

    @property
    def proposal(self) -> str:
        return self.cells[0].proposal

    @property
    def seed(self) -> int:
        return self.cells[0].seed


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Launches of one target, seed and repeat on one device: speedups are taken within it."""

    id: str  # e.g. "Qwen3-8B-s42-r0"
    target: str
    seed: int
    repeat: int
    launches: tuple[PlannedLaunch, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that a sweep means on this machine."""

    name: str
    sweep: Sweep
    allocations: tuple[Allocation, ...]
    missing_sets: Mapping[str, str] = field(default_factory=dict)  # prompt set -> reason and the command that adds it
    missing_models: Mapping[str, str] = field(default_factory=dict)  # hub id -> the command that fetches it

    @property
    def launches(self) -> tuple[PlannedLaunch, ...]:
        return tuple(launch for allocation in self.allocations for launch in allocation.launches)

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for launch in self.launches for cell in launch.cells)


def expand(sweep: Sweep, inputs: Inputs) -> Plan:
    """All cells of ``sweep`` given what `inputs.resolve` found. Deterministic; cells have distinct ids."""
    raise NotImplementedError

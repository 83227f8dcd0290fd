"""The plan: a sweep's cells in the order in which they are run, grouped by server process and by allocation.

Pure: `expand` reads nothing but its arguments. `inputs.resolve` looks at checkpoints, prompt sets and the device.

An *allocation* is what runs on one device in one go: one target, one seed, one repeat; AR first and last, and the
arms between them in an order that odd repeats reverse, so that a linear drift cancels over two repeats.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.schema.cell import Cell
from harness.sweep import cells
from harness.sweep.plan_notes import notes
from harness.sweep.resolve import Inputs, resolve
from harness.sweep.sweep import AR, Sweep, load
from sglang_specbench.arms import ARMS, WINDOW
from sglang_specbench.atomic_file import write_text
from sglang_specbench.config import from_dict
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import read_object
from sglang_specbench.launch import Launch
from sglang_specbench.models import Model

REMEDY = "is this a run folder? specbench run makes one"


@dataclass(frozen=True, kw_only=True)
class PlannedLaunch:
    """The cells that one server process serves, in order."""

    id: str  # 12 hex digits over everything that tells this process from another
    order: int  # place in the allocation
    target_path: str  # folder, or hub id while it is not downloaded
    draft_path: str  # "" without a drafter
    cells: tuple[Cell, ...]
    window: int = WINDOW  # positions verified a block, by the drafter's checkpoint; of no meaning without a block head
    provenance: Mapping[str, Any] = field(default_factory=dict)  # the drafter's own words; {} if it says nothing

    @property
    def arm(self) -> str:
        return self.cells[0].arm

    @property
    def proposal(self) -> str:
        return self.cells[0].proposal

    @property
    def seed(self) -> int:
        return self.cells[0].seed

    def server(self, port: int) -> Launch:
        """The server process that serves these cells on ``port``."""
        first = self.cells[0]
        return Launch(
            arm=first.arm,
            proposal=ARMS[first.arm].proposal(first.temperature),
            target=self.target_path,
            draft=self.draft_path or None,
            device=first.device,
            dtype=first.dtype,
            port=port,
            seed=first.seed,
            concurrency=first.capacity,
            context_length=first.context_length,
            window=self.window,
            extra=first.server,
        )


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
    allocations: tuple[Allocation, ...]
    missing_sets: Mapping[str, str] = field(default_factory=dict)  # prompt set -> reason and the command that fixes it
    missing_models: tuple[Model, ...] = ()
    notes: tuple[str, ...] = ()  # what a reader of the sweep may not expect (`notes`)

    @property
    def launches(self) -> tuple[PlannedLaunch, ...]:
        return tuple(launch for allocation in self.allocations for launch in allocation.launches)

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for launch in self.launches for cell in launch.cells)

    def require_models(self) -> None:
        """`UserError` with the remedies unless every checkpoint is here: called before anything is run."""
        for model in self.missing_models:
            model.require()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, read back by `read`."""
        return asdict(self)


def make(source: str | Path, data_dirs: Sequence[Path] = (), device: str = "") -> tuple[Sweep, Plan]:
    """Load, resolve and expand a sweep file or shipped sweep; ``device`` ("" = none) wins over the sweep's."""
    sweep = load(source)
    return sweep, expand(sweep, resolve(sweep, data_dirs, device))


def expand(sweep: Sweep, inputs: Inputs) -> Plan:
    """All cells of ``sweep`` given what `inputs.resolve` found. Deterministic; cells have distinct ids."""
    groups: dict[tuple[int, str, int], list[Cell]] = defaultdict(list)
    expanded = cells.cells(sweep, inputs)
    for cell in expanded:
        groups[cell.repeat, cell.target, cell.seed].append(cell)
    targets = list(sweep.target)
    in_order = sorted(groups, key=lambda key: (key[0], targets.index(key[1])))  # stable: seeds as the panels name them
    allocations = [_allocation(sweep, inputs, groups[key]) for key in in_order]
    return Plan(
        name=sweep.name,
        allocations=tuple(allocations),
        missing_sets=inputs.missing_sets,
        missing_models=inputs.missing_models,
        notes=notes(sweep, expanded),
    )


def write(plan: Plan, run_dir: Path) -> None:
    """Write ``RUN/plan.json``."""
    write_text(run_dir / "plan.json", json.dumps(plan.to_json(), indent=1))


def read(run_dir: Path) -> Plan:
    """The plan in ``RUN/plan.json``; `UserError` if there is none."""
    path = run_dir / "plan.json"
    plan = from_dict(Plan, read_object(path, REMEDY), str(path))
    for place, launch in enumerate(plan.launches):
        if not launch.cells:
            raise UserError(f"{path}: launch {place} has no cells", REMEDY)
    return plan


def _allocation(sweep: Sweep, inputs: Inputs, group: Sequence[Cell]) -> Allocation:
    first = group[0]
    servers: dict[tuple[Any, ...], list[Cell]] = defaultdict(list)
    for cell in group:
        servers[cell.launch_key].append(cell)
    opening = [s for s in servers.values() if s[0].arm == AR and not s[0].replica]
    closing = [s for s in servers.values() if s[0].arm == AR and s[0].replica]
    drafted = _in_panel_order(sweep, [s for s in servers.values() if s[0].arm != AR])
    if sweep.order == "abba" and first.repeat % 2:
        drafted.reverse()
    launches = [_launch(inputs, order, s) for order, s in enumerate([*opening, *drafted, *closing])]
    return Allocation(
        id=f"{first.target}-s{first.seed}-r{first.repeat}",
        target=first.target,
        seed=first.seed,
        repeat=first.repeat,
        launches=tuple(launches),
    )


def _in_panel_order(sweep: Sweep, servers: list[list[Cell]]) -> list[list[Cell]]:
    """Arms as the panels first name them; within an arm, argmax before sampled."""
    names = list(dict.fromkeys(name for panel in sweep.panel for name in panel.arms))
    return sorted(servers, key=lambda s: (names.index(s[0].arm), s[0].proposal))


def _launch(inputs: Inputs, order: int, served: Sequence[Cell]) -> PlannedLaunch:
    first = served[0]
    key = (first.target, ARMS[first.arm].checkpoint)
    draft = inputs.drafters.get(key)
    return PlannedLaunch(
        id=hashlib.sha256(json.dumps(first.launch_key).encode()).hexdigest()[:12],
        order=order,
        target_path=inputs.targets[first.target].path,
        draft_path=draft.path if draft else "",
        cells=tuple(served),
        window=inputs.windows.get(key, WINDOW),
        provenance=inputs.provenance.get(key, {}),
    )

"""The one launch that somebody means who names a sweep, or a target, and an arm."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from harness.sweep.bare_target import WHERE, sweep_of
from harness.sweep.plan import PlannedLaunch, expand
from harness.sweep.resolve import resolve
from harness.sweep.sweep import Sweep, load, shipped
from sglang_specbench.config import near_name
from sglang_specbench.device import detect_device
from sglang_specbench.errors import UserError

IN_FLIGHT = {"cuda": 64, "cpu": 8}  # requests, where a target alone is named


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """``others``: how many launches of ``sweep`` fit as well, and have another server."""

    sweep: Sweep
    launch: PlannedLaunch
    others: int


def choose(source: str, arm: str, only: str, concurrency: int | None) -> Chosen:
    """The first launch of ``arm`` that has a cell whose label matches the glob ``only``; its models are here.

    ``source`` is a sweep file, a shipped sweep or a model. `UserError` if there is no such launch.
    """
    sweep = _sweep(source, arm, only, concurrency)
    plan = expand(sweep, resolve(sweep))
    launches = [launch for launch in plan.launches if launch.arm == arm]
    if not launches:
        raise UserError(f"{WHERE}: {sweep.where} has no arm {arm!r}", near_name(arm, {x.arm for x in plan.launches}))
    fitting = [x for x in launches if not only or any(fnmatchcase(cell.label, only) for cell in x.cells)]
    if not fitting:
        label = launches[0].cells[0].label
        raise UserError(f"{WHERE}: --only {only!r} matches no cell of arm {arm!r}", f"labels look like {label!r}")
    first = fitting[0]
    for model in plan.missing_models:
        if model.path in (first.target_path, first.draft_path):
            model.require()
    return Chosen(sweep=sweep, launch=first, others=len({x.server(port=0) for x in fitting}) - 1)


def _sweep(source: str, arm: str, only: str, concurrency: int | None) -> Sweep:
    path = Path(source)
    if path.is_file() or path.suffix == ".toml" or (source in shipped() and not path.is_dir()):
        if concurrency:
            raise UserError(f"{WHERE}: --concurrency goes with a target alone", "a sweep states its own")
        return load(source)
    if only:
        raise UserError(f"{WHERE}: --only goes with a sweep", "leave it out")
    return sweep_of(source, arm, concurrency or IN_FLIGHT[detect_device()])

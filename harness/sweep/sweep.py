"""A sweep: what somebody wants measured, as written in a TOML file.

Knows the file's keys, their defaults and their limits. Reads no checkpoint, no prompt set and no device: `inputs`
resolves those, `plan` expands the result. Relative model paths start at the working folder, so that the copy of the
file in a run folder means the same.
"""

import math
import re
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Literal

from harness.sweep.arguments import refuse_out_of_range, refuse_secrets, refuse_unsplit, refuse_variables
from harness.sweep.stated import refuse_overrides
from sglang_specbench.arms import get_arm
from sglang_specbench.config import from_dict, load_toml, near_name
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import read_text

AR = "ar"
LONGEST = 100  # characters of a target's name: it is part of file names
MOST_REPEATS = 1000
MOST_CELLS = 100_000  # a sweep of more is a mistake in its lists: a year of one minute a cell is half a million
_FOLDER = re.compile(r"\w[\w.-]{0,99}")  # a run is kept in results/runs/NAME


@dataclass(frozen=True, kw_only=True)
class TargetSpec:
    """One ``[target.NAME]``: the model served, and where each trained drafter of it lies."""

    path: str  # folder, `mini:NAME`, `trained:NAME` or a hub id `ORG/NAME[@REVISION]`
    drafters: dict[str, str] = field(default_factory=dict)  # by checkpoint (`specbench arms NAME` says which): the
    # model, named as in `path`


@dataclass(frozen=True, kw_only=True)
class SetSpec:
    """One ``[panel.sets.NAME]``: how much of a prompt set is taken."""

    prompts: int = 0  # from the front of the set; 0: all of it
    max_new_tokens: int = 0  # of an answer; 0: what the set's manifest says
    tiers: tuple[str, ...] = ()  # one cell for each named tier; empty: the whole set

    def __post_init__(self) -> None:
        _not_negative("prompts", self.prompts)
        _not_negative("max_new_tokens", self.max_new_tokens)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One ``[[panel]]``: the product of its lists. Panels of one sweep share servers; equal cells are run once."""

    arms: tuple[str, ...]  # names of `specbench arms`; without ar beside them there are no speedups
    sets: dict[str, SetSpec]  # prompt set (see `specbench data list`) -> how much of it is taken
    targets: tuple[str, ...] = ()  # names of [target.*] tables; empty: every one
    temperatures: tuple[float, ...] = (0.0,)  # 0 is greedy
    seeds: tuple[int, ...] = (42,)  # a server each (--random-seed); at temperature 0 only the first is used
    concurrency: tuple[int, ...] = (1,)  # requests in flight

    def __post_init__(self) -> None:
        for key in ("arms", "sets", "temperatures", "seeds", "concurrency"):
            if not getattr(self, key):
                raise ValueError(f"{key} is empty and nothing would be measured: name at least one")
        for c in self.concurrency:
            if c < 1:
                raise ValueError(f"concurrency {c} is not at least 1: write 1 or more")
        for t in self.temperatures:
            if not 0 <= t < math.inf:
                raise ValueError(f"temperature {t:g} is {'negative' if t < 0 else 'no number'}: write 0 or more")
        for seed in self.seeds:
            _not_negative("seeds", seed)


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """``[server]``: what holds for every server of the sweep."""

    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: cuda where a GPU may be used
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"  # auto: bfloat16 on cuda, float32 on cpu
    args: tuple[str, ...] = ()  # SGLang's, one word each, added to every arm's command line in order
    environment: dict[str, str] = field(default_factory=dict)  # variables of every server, such as
    # `SGLANG_EXTERNAL_MODEL_PACKAGE`; a PYTHONPATH stands in front of the caller's
    context_length: int = 8192  # tokens; prompt and answer must fit, and the model must have as much
    start_timeout_s: float = 900.0  # seconds until a server must answer
    request_timeout_s: float = 600.0  # seconds for one answer

    def __post_init__(self) -> None:
        for key in ("context_length", "start_timeout_s", "request_timeout_s"):
            if not getattr(self, key) > 0:  # nor nan
                raise ValueError(f"{key} {getattr(self, key):g} is not above 0: write a positive number")

    @property
    def words(self) -> tuple[str, ...]:
        """``environment`` and ``args`` as one command line has them for env(1), which is how a cell keeps them."""
        return (*(f"{name}={value}" for name, value in sorted(self.environment.items())), *self.args)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The whole file. ``source`` is its text, kept beside the results; ``where`` its path, for messages."""

    name: str  # of the run folder: results/runs/NAME, unless --out says otherwise
    target: dict[str, TargetSpec]  # name in tables -> the model and its drafters
    panel: tuple[Panel, ...]  # what is measured
    title: str = ""  # for people
    repeats: int = 1  # allocations per target and seed: A/A repeats and the noise floor come from them
    order: Literal["abba", "fixed"] = "abba"  # abba: odd repeats run the arms backwards
    min_wall_s: float = 0.0  # a cell measured for less time carries a caution
    stream: bool = False  # answers come in chunks: `report` then has the gaps between them, by the client's clock
    server: ServerSpec = field(default_factory=ServerSpec)  # what holds for every server
    source: str = field(default="", compare=False)
    where: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not _FOLDER.fullmatch(self.name):
            raise ValueError(f"name {self.name!r} names no run folder: write letters, digits, '-', '_' and '.'")
        for target in self.target:
            if not 0 < len(target) <= LONGEST or not target.isprintable():
                raise ValueError(f"target {target[:LONGEST]!r}: write a name of 1 to {LONGEST} printable characters")
        if not 1 <= self.repeats <= MOST_REPEATS:
            raise ValueError(f"repeats {self.repeats} is not from 1 to {MOST_REPEATS}: write such a number")
        if not self.target or not self.panel:
            raise ValueError("nothing to measure: write at least one [target.NAME] and one [[panel]]")

    def targets_of(self, panel: Panel) -> tuple[str, ...]:
        """Names of the targets that ``panel`` measures."""
        return panel.targets or tuple(self.target)


def shipped() -> dict[str, Path]:
    """The sweeps that come with the package, by name."""
    folder = Path(str(resources.files("harness.sweep") / "shipped"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load(source: str | Path) -> Sweep:
    """The sweep in the TOML file ``source``, or the shipped one of that name.

    Raises `UserError` naming file, key and remedy for anything that is wrong in it.
    """
    path = _locate(source)
    table = load_toml(path)
    for key in ("source", "where"):
        if key in table:
            raise UserError(f"{path}: unknown key {key!r}", "remove it")
    sweep = from_dict(Sweep, {**table, "source": read_text(path), "where": str(path)}, str(path))
    _check_names(sweep)
    refuse_overrides(sweep.server.args, sweep.where)
    return sweep


def _locate(source: str | Path) -> Path:
    path, known = Path(source), shipped()
    if path.exists() or path.suffix == ".toml":
        return path
    if str(source) not in known:
        raise UserError(f"{source}: neither a sweep file nor a shipped sweep", near_name(str(source), known))
    return known[str(source)]


def _check_names(sweep: Sweep) -> None:
    """Arms, targets and drafters that a panel names must exist; no argument of the server is a secret."""
    refuse_secrets(sweep.server.args, sweep.where)
    refuse_unsplit(sweep.server.args, sweep.where)
    refuse_out_of_range(sweep.server.args, sweep.where)
    refuse_variables(sweep.server.environment, sweep.where)
    for i, panel in enumerate(sweep.panel):
        where = f"{sweep.where}: panel[{i}]"
        for name in panel.targets:
            if name not in sweep.target:
                raise UserError(f"{where}: targets: unknown target {name!r}", near_name(name, sweep.target))
        for arm_name in panel.arms:
            checkpoint = get_arm(arm_name, f"{where}: arms").checkpoint
            for target in sweep.targets_of(panel):
                if checkpoint and checkpoint not in sweep.target[target].drafters:
                    raise UserError(
                        f"{sweep.where}: target.{target}.drafters: no {checkpoint!r}, which arm {arm_name!r} needs",
                        f'add "{checkpoint}" = "FOLDER or hub id"',
                    )


def _not_negative(key: str, value: int) -> None:
    if value < 0:
        raise ValueError(f"{key} {value} is negative: write 0 or more")

"""The one table of what may stand side by side: each field of cell, header, environment and attestation has one role.

Store, estimates, gate, comparison, greedy match and certificates read this table and keep no list of their own; where
two cells differ in it says `harness.schema.facts`. Roles,
from the strictest to none:

  setting   names the row of a table: other values are another number, not a repeat of this one
  compare   equal in two numbers that are set against each other, in one run or in two
  merge     equal in the cells that are averaged or set against each other within a run; between two runs it is what
            one compares, and named where it differs
  varies    meant to differ between the cells of one setting: averaged over, counted, named where some are absent
  shown     decides nothing; ``reason`` says why

``among`` says which cells of a run must agree. A key that is not here, from a newer version's environment or
attestation, is treated as *merge* in the whole run (`UNKNOWN`): what nobody has judged must not differ in silence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum


class Role(StrEnum):
    """See the module."""

    SETTING = "setting"
    COMPARE = "compare"
    MERGE = "merge"
    VARIES = "varies"
    SHOWN = "shown"


class Among(Enum):
    """The cells that must agree: those with equal values of these fields."""

    RUN = ()
    TARGET = ("target",)
    ARM = ("target", "arm")
    PLACE = ("target", "prompt_set", "tier", "temperature", "concurrency")  # rivals, and the AR they are divided by
    SETTING = (*PLACE, "arm")  # seeds and repeats


@dataclass(frozen=True)
class FieldRule:
    """``speed``: only tokens per second mean nothing across it. ``certified``: an audit holds for its value alone."""

    role: Role
    among: Among = Among.RUN
    reason: str = ""
    speed: bool = False
    certified: bool = False


def _shown(reason: str) -> FieldRule:
    return FieldRule(Role.SHOWN, reason=reason)


_SETTING, _VARIES = FieldRule(Role.SETTING), FieldRule(Role.VARIES)
_COMPARE, _MERGE = Role.COMPARE, Role.MERGE
UNKNOWN = FieldRule(_MERGE)

CELL: Mapping[str, FieldRule] = {
    "target": _SETTING,
    "target_digest": FieldRule(_MERGE, Among.TARGET, certified=True),
    "arm": FieldRule(Role.SETTING, certified=True),
    "proposal": FieldRule(_COMPARE, Among.SETTING),
    "draft_digest": FieldRule(_MERGE, Among.ARM, certified=True),
    "prompt_set": _SETTING,
    "prompt_version": FieldRule(_COMPARE, Among.PLACE),
    "tier": _SETTING,
    "temperature": _SETTING,
    "seed": _VARIES,
    "concurrency": _SETTING,
    "repeat": _VARIES,
    "replica": _VARIES,
    "prompts": FieldRule(_COMPARE, Among.PLACE),
    "max_new_tokens": FieldRule(_COMPARE, Among.PLACE),
    "ignore_eos": FieldRule(_COMPARE, Among.PLACE),
    "top_p": FieldRule(_COMPARE, Among.PLACE),
    "top_k": FieldRule(_COMPARE, Among.PLACE),
    "device": FieldRule(_COMPARE, Among.RUN, certified=True),
    "dtype": FieldRule(_COMPARE, Among.TARGET, certified=True),
    "render": FieldRule(_COMPARE, Among.TARGET),
    "capacity": FieldRule(_COMPARE, Among.PLACE, speed=True),
    "context_length": FieldRule(_COMPARE, Among.PLACE),
    "stream": FieldRule(_COMPARE, Among.PLACE, speed=True),
    "server": FieldRule(_MERGE, Among.PLACE, certified=True),
    "versions": FieldRule(_MERGE, certified=True),
}
HEADER: Mapping[str, FieldRule] = {
    "cell": _shown("its fields have entries of their own"),
    "outcome": _shown("only ok cells are numbers; every other one is named as absent"),
    "reason": _shown("words"),
    "log_tail": _shown("words"),
    "wall_s": _shown("it is the measurement"),
    "started_at": _shown("a time of day"),
    "allocation": _shown("speedups are taken within it, by name"),
    "launch": _shown("one server process; seeds and repeats have several"),
    "order": _shown("place in the allocation; ABBA changes it on purpose"),
    "prompts_digest": FieldRule(_COMPARE, Among.PLACE),
    "environment": _shown("its keys have entries of their own"),
    "attestation": _shown("its keys have entries of their own"),
    "provenance": _shown("what a drafter says of its own training; its weights have a digest"),
    "server_argv": _shown("made from the cell's fields; ports and folders differ"),
    "server_args": _shown("as resolved; what of it is a cell's was compared at the start, ports and folders differ"),
    "server_env": _shown("made from the arm and the machine; folders differ"),
    "warmup": _shown("what was sent before the clock ran"),
    "call": _shown("one command; seeds and repeats have several, and a remote allocation is named by it"),
    "reached": _shown("judged against the cell's concurrency"),
    "counters": _shown("sums of the rows, held against them when they are read"),
    "machine": _shown("what else ran meanwhile: judged by itself, and marks the speed"),
    "cautions": _shown("printed beside the number"),
    "schema": _shown("a file of another schema is not read at all"),
}
ENVIRONMENT: Mapping[str, FieldRule] = {
    "device_name": FieldRule(_COMPARE, speed=True),
    "driver": FieldRule(_MERGE),
    "sglang": FieldRule(_MERGE),
    "torch": FieldRule(_MERGE),
    "python": FieldRule(_MERGE),
    "specbench": FieldRule(_MERGE),
    "threads": FieldRule(_COMPARE, speed=True),
    "attested": FieldRule(_MERGE),
    "cores": FieldRule(_MERGE),
    "platform": _shown("names of kernel and C library; what counts of them shows in device, driver and versions"),
    "commit": _shown("a checkout moves between two tries of one run; what serves is attested by version and patches"),
    "load": _shown("differs from cell to cell; a busy machine is judged by itself"),
    "gpu": _shown("clocks and temperature of a moment; name and driver have entries of their own"),
}
ATTESTATION: Mapping[str, FieldRule] = {
    "plugin_version": FieldRule(_MERGE),
    "sglang_version": FieldRule(_MERGE),
    "arm": FieldRule(_COMPARE, Among.ARM),
    "proposal": FieldRule(_COMPARE, Among.SETTING),
    "device": FieldRule(_COMPARE),
    "dtype": FieldRule(_COMPARE, Among.TARGET),
    "worker": FieldRule(_MERGE, Among.SETTING),
    "draft_model": FieldRule(_MERGE, Among.ARM),
    "head": FieldRule(_MERGE, Among.SETTING),
    "head_folded": FieldRule(_MERGE, Among.SETTING),
    "window": FieldRule(_MERGE, Among.ARM),
    "drafted": FieldRule(_MERGE, Among.ARM),
    "candidate_pool": FieldRule(_MERGE, Among.ARM),
    "graph_sizes": FieldRule(_MERGE, Among.SETTING),
    "head_captured": FieldRule(_MERGE, Among.SETTING),
    "draft_graph_sizes": FieldRule(_MERGE, Among.SETTING),
    "seed": _shown("the cell's seed, attested; it varies"),
    "target_digest": FieldRule(_MERGE, Among.TARGET),
    "draft_digest": FieldRule(_MERGE, Among.ARM),
    "verification": FieldRule(_COMPARE),
    "threads": FieldRule(_COMPARE, speed=True),
    "patches": FieldRule(_MERGE, Among.SETTING),
}
ENV, ATTESTED = "env_", "attestation."  # before an environment key (as in the store's frame), before an attested one
FIELDS: Mapping[str, FieldRule] = {
    **CELL,
    **HEADER,
    **{ENV + key: entry for key, entry in ENVIRONMENT.items()},
    **{ATTESTED + key: entry for key, entry in ATTESTATION.items()},
}
CERTIFIED = tuple(name for name, entry in CELL.items() if entry.certified)
EVERY_ARM = (Among.RUN, Among.TARGET, Among.PLACE)  # what rivals share, whatever their drafter


def compared(speed: bool) -> list[str]:
    """Fields that two runs must share in a setting for acceptance, or for ``speed``, to be compared."""
    return [k for k, e in FIELDS.items() if e.role is _COMPARE and (speed or not e.speed)]


def merged() -> list[str]:
    """Fields in which two runs may differ, and say so: what one compares."""
    return [k for k, e in FIELDS.items() if e.role is _MERGE]


def rivals() -> list[str]:
    """Fields of a cell in which an arm and the AR that it must match agree."""
    place = [k for k, e in CELL.items() if e.role is Role.SETTING and k != "arm"]
    return [*place, *(k for k, e in CELL.items() if e.role in (_COMPARE, _MERGE) and e.among in EVERY_ARM)]


def shown(field: str) -> str:
    """A field's name for people."""
    return field.removeprefix(ENV)

"""What a plan needs to know of this machine: model folders and digests, prompt sets, the device.

The reading half of planning; `plan.expand` is the pure half.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.prompts import load as prompts
from harness.prompts.chat_template import render_digest
from harness.prompts.manifest import Manifest, known, manifest
from harness.prompts.prompt_set import PromptSet
from harness.sweep import provenance
from harness.sweep.sweep import Sweep
from sglang_specbench import checkpoint, models
from sglang_specbench.arms import Arm, base_of, get_arm
from sglang_specbench.checkpoint_kind import row
from sglang_specbench.config import near_name
from sglang_specbench.device import detect_device, dtype_on
from sglang_specbench.errors import UserError
from sglang_specbench.machine import unsupplied
from sglang_specbench.models import Model


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything that the names in one sweep stand for."""

    device: str  # cuda | cpu
    dtype: str  # bfloat16 | float32
    targets: Mapping[str, Model]
    drafters: Mapping[tuple[str, str], Model]  # (target, checkpoint name)
    renders: Mapping[str, str]  # target -> digest of recipe, tokenizer and chat template
    manifests: Mapping[str, Manifest]
    sets: Mapping[str, PromptSet]  # those that are here
    missing_sets: Mapping[str, str]  # set -> reason and the command that fixes it
    provenance: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)  # as `drafters`; {}: unknown

    windows: Mapping[tuple[str, str], int] = field(default_factory=dict)  # as `drafters`: positions verified a block

    @property
    def missing_models(self) -> tuple[Model, ...]:
        """Those that are not on this machine, each source once."""
        found = [*self.targets.values(), *self.drafters.values()]
        return tuple({m.source: m for m in reversed(found) if m.folder is None}.values())[::-1]


def resolve(sweep: Sweep, data_dirs: Sequence[Path] = (), device: str = "") -> Inputs:
    """Look up everything that ``sweep`` names. Reads files; no network. ``device`` ("" = none) wins over the sweep's.

    Raises `UserError` for a missing folder, a checkpoint that its arm would not serve as what it is called, or an
    arm that this device cannot run. Hub ids that are not downloaded and absent prompt sets are in the result.
    """
    device = device or (sweep.server.device if sweep.server.device != "auto" else detect_device())
    dtype = sweep.server.dtype
    targets = {
        name: models.resolve(spec.path, f"{sweep.where}: target.{name}.path") for name, spec in sweep.target.items()
    }
    for model in targets.values():
        if model.folder:
            checkpoint.check_target(model.folder)
    names = dict.fromkeys(name for panel in sweep.panel for name in panel.sets)
    here = known(data_dirs)
    for name in names:
        if name not in here:
            raise UserError(f"{sweep.where}: panel.sets: unknown prompt set {name!r}", near_name(name, here))
    sets, missing = _sets(names, data_dirs)
    drafters = _drafters(sweep, targets, device)
    return Inputs(
        device=device,
        dtype=dtype_on(device, dtype),
        targets=targets,
        drafters=drafters,
        windows={
            key: checkpoint.window(model.folder, row(base_of(key[1])))
            for key, model in drafters.items()
            if model.folder
        },
        provenance={key: provenance.read(model.folder) for key, model in drafters.items() if model.folder},
        renders={name: render_digest(m.folder) if m.folder else m.digest for name, m in targets.items()},
        manifests={name: manifest(name, data_dirs) for name in names},
        sets=sets,
        missing_sets=missing,
    )


def _drafters(sweep: Sweep, targets: Mapping[str, Model], device: str) -> dict[tuple[str, str], Model]:
    found: dict[tuple[str, str], Model] = {}
    for target, arm in _pairs(sweep):
        if lacking := unsupplied(arm):
            raise UserError(f"{sweep.where}: panel.arms: {arm.name!r} is {lacking}", "leave it out")
        if device == "cpu" and "cuda" in arm.needs:
            raise UserError(f"{sweep.where}: arm {arm.name!r} runs on cuda only", "leave it out, or set server.device")
        if not arm.checkpoint:
            continue
        key = (target, arm.checkpoint)
        if key not in found:
            source = sweep.target[target].drafters[arm.checkpoint]
            found[key] = models.resolve(source, f"{sweep.where}: target.{target}.drafters.{arm.checkpoint}")
        folder = found[key].folder
        if folder:
            checkpoint.check(folder, arm, targets[target].folder)
    return found


def _pairs(sweep: Sweep) -> Iterator[tuple[str, Arm]]:
    pairs = ((t, a) for panel in sweep.panel for t in sweep.targets_of(panel) for a in panel.arms)
    for target, name in dict.fromkeys(pairs):
        yield target, get_arm(name)


def _sets(
    names: Sequence[str] | Mapping[str, None], data_dirs: Sequence[Path]
) -> tuple[dict[str, PromptSet], dict[str, str]]:
    found, missing = {}, {}
    for name in names:
        try:
            found[name] = prompts.load(name, data_dirs)
        except prompts.MissingSet as error:
            missing[name] = str(error)
    return found, missing

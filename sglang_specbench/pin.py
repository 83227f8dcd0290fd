"""The command ``specbench pin``: what another SGLang changes for us, by name, before anything of it is installed.

All that we rely on and SGLang does not promise: the functions that we patch, the lines that we look for in its log, its
flags and environment variables, and the attributes that an attestation is read from.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sglang_specbench import SGLANG_VERSION, capture, sglang_source
from sglang_specbench.arms import ARMS
from sglang_specbench.console import Console
from sglang_specbench.errors import UserError
from sglang_specbench.launch import Launch, ServerConfig
from sglang_specbench.refused_log import REFUSED_LOG

THEIRS = "SGLANG_"  # beginning of the environment variables that are SGLang's


@dataclass(frozen=True, kw_only=True)
class Change:
    """``old`` and ``new`` are "" where there is none."""

    kind: str
    name: str
    old: str
    new: str


def pin(
    folder: Annotated[Path, typer.Argument(help="Unpacked wheel of another SGLang: holds the folder sglang.")],
) -> None:
    """What another SGLang changes for us, by name; exit code 1 if there is anything.

    Compares with the installed one. To get a wheel: pip download --no-deps sglang==VERSION, then unzip it.
    """
    new = folder / "sglang" if (folder / "sglang").is_dir() else folder
    if not (new / "srt").is_dir():
        raise UserError(f"{folder}: no sglang/srt in it", "name the folder of an unpacked wheel of SGLang")
    old = sglang_source.installed()
    found = list(changes(old, new))
    console = Console()
    for change in found:
        text = f"{change.kind}: {change.name}: " + ("gone" if not change.new else f"{change.old} -> {change.new}")
        console.print(text, soft_wrap=True)
    said = f"{len(found)} changes" if found else "nothing changes"
    console.print(f"{said} of what specbench relies on (against SGLang {SGLANG_VERSION})")
    raise typer.Exit(1 if found else 0)


def changes(old: Path, new: Path) -> Iterator[Change]:
    """What of ``old`` that we rely on is another in ``new``; both are folders ``sglang``."""
    for name, target in _patched():
        before, after = sglang_source.signature(old, target), sglang_source.signature(new, target)
        if before != after:
            yield Change(kind="patched", name=f"{name} ({target})", old=before, new=after)
    for pattern in _lines():
        if not sglang_source.printable(new, pattern) and sglang_source.printable(old, pattern):
            yield Change(kind="log line", name=pattern, old="printed", new="")
    known, left = sglang_source.words(old), sglang_source.words(new)
    for kind, names in (("flag", _flags()), ("environment variable", _variables()), ("attribute", _attributes())):
        for name in names:
            wanted = {name, name.removeprefix("--").replace("-", "_")}
            if wanted & known and not wanted & left:
                yield Change(kind=kind, name=name, old="known", new="")


def _patched() -> Iterator[tuple[str, str]]:
    """Name and target of each patch of SGLang's."""
    from sglang_specbench.serving.bootstrap import _bootstrap
    from sglang_specbench.serving.patches.table import CPU, GATES, OF_ARM

    config = ServerConfig(arm="ar", proposal="none", device="cpu", target="")
    for patch in (*GATES, *CPU, *OF_ARM.values(), *_bootstrap(config)):
        if patch.target.startswith("sglang."):
            yield patch.name, patch.target


def _lines() -> list[str]:
    """Every pattern that is looked for in a log, its alternatives one by one."""
    proofs = {text for arm in ARMS.values() for text in (*arm.argmax_log, *arm.sampled_log)}
    refused = [text for rule in REFUSED_LOG for text in sglang_source.alternatives(rule.pattern)]
    return [*refused, *sorted(proofs), capture.END.format(name="draft verify")]


def _launches() -> Iterator[Launch]:
    for arm in ARMS.values():
        for device in ("cpu", "cuda"):
            proposal = arm.proposal(1.0)
            yield Launch(arm=arm.name, proposal=proposal, target="T", draft="D", device=device, port=1, seed=1)


def _flags() -> list[str]:
    return sorted({text for launch in _launches() for text in launch.argv if text.startswith("--")})


def _variables() -> list[str]:
    named = {name for launch in _launches() for name in launch.env if name.startswith(THEIRS)}
    return sorted(named | {n for arm in ARMS.values() for n in (*arm.env, *arm.argmax_env, *arm.sampled_env)})


def _attributes() -> list[str]:
    """What is read from the worker and its runner when a server is attested."""
    from sglang_specbench.serving import attest

    source = Path(attest.__file__).read_text(encoding="utf-8")
    read = re.findall(r"\b(?:worker|runner|scheduler|graphs|spec|dflash_utils)\.([a-z_]\w+)", source)
    read += [part for name in attest._FLAGS for part in name.split(".")]
    read += [part for arm in ARMS.values() if arm.switch for part in (arm.switch.part, arm.switch.flag)]
    return sorted(set(read))

"""How a function of SGLang is replaced: only the exact one that the replacement was written for.

Knows records and signatures; which patches exist stands in ``patches/table.py``. These are private functions of one
SGLang release, so each patch names the release and the signature, and anything else raises `PatchError`.
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sglang_specbench import SGLANG_VERSION

APPLIED: dict[str, str] = {}  # patches of this process: name -> "applied"


class PatchError(RuntimeError):
    """The installed SGLang is not what the patch was written for."""


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One replacement. ``signature`` is what `signature_of` must say of the target before it is replaced."""

    name: str
    target: str  # "module:attribute" or "module:Class.attribute", where it is looked up when called
    signature: str
    replace: Callable[[Any], Any]  # original -> replacement
    reason: str
    delete_when: str
    sglang: str = SGLANG_VERSION


def apply(patch: Patch) -> None:
    """Replace ``patch.target``; `PatchError` if the release or the signature is another one."""
    import sglang

    if sglang.__version__ != patch.sglang:
        raise PatchError(f"patch {patch.name}: written for SGLang {patch.sglang}, found {sglang.__version__}")
    module, _, path = patch.target.partition(":")
    *parents, attribute = path.split(".")
    owner = importlib.import_module(module)
    try:
        for parent in parents:
            owner = getattr(owner, parent)
        original = getattr(owner, attribute)
    except AttributeError as error:
        raise PatchError(f"patch {patch.name}: {patch.target} does not exist: {error}") from None
    seen = signature_of(original)
    if seen != patch.signature:
        raise PatchError(f"patch {patch.name}: {patch.target} is {seen}, the patch was written for {patch.signature}")
    setattr(owner, attribute, patch.replace(original))
    APPLIED[patch.name] = "applied"


def always(value: Any) -> Callable[[Any], Any]:
    """For `Patch.replace` when the replacement does not need the original."""
    return lambda original: value


def signature_of(value: Any) -> str:
    """Parameters of a function without annotations, ``builtin`` for C functions, the repr of anything else."""
    if not callable(value):
        return repr(value)
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "builtin"
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))

"""Find what SGLang 0.5.23 would not tell you about a drafter checkpoint: a wrong name leaves random weights behind.

Two sides: config.json (`config_checks`), and the tensors, whose names, shapes, types and values are compared with the
list that config.json implies (`tensor_shapes`). A finding is something wrong with its remedy; unreadable files are
`UserError`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import safe_open

from drafters.checkpoints.config_checks import config_findings
from drafters.model.finding import Finding
from drafters.model.tensor_shapes import expected
from sglang_specbench.checkpoint import TENSORS_BYTES
from sglang_specbench.checkpoint import read_config as read_config_file
from sglang_specbench.checkpoint_kind import kind
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import open_file, reading

_PREFIXES = ("model.", "module.", "_orig_mod.", "draft_model.")
_AGAIN = "export the checkpoint again"
_BORROWED = ("embed_tokens.", "lm_head.")


def check(folder: Path, target: Path | None = None) -> list[Finding]:
    """What is wrong with the checkpoint in ``folder``, also beside the model in ``target`` when that is given."""
    config = read_config(folder)
    beside = read_config(target) if target else None
    try:
        found = config_findings(config, beside)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        hint = "each field must be of the type that transformers writes"
        raise UserError(f"{folder / 'config.json'}: a field is missing or of another type: {error!r}", hint) from None
    try:
        shapes = expected(config)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return found  # config.json does not say what tensors there should be: it has its own finding
    return found + list(_tensor_findings(folder, shapes, kind(config)))


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of ``folder``; `UserError` when it is absent or not an object."""
    path = folder / "config.json"
    return read_config_file(path)


def _tensor_findings(folder: Path, shapes: dict[str, tuple[int, ...]], head: str) -> Iterator[Finding]:
    stored: dict[str, Path] = {}
    for path in sorted(folder.glob("*.safetensors")):
        open_file(path, TENSORS_BYTES, _AGAIN).close()
        with _open(path) as file:
            for name in file.keys():  # noqa: SIM118 (not a dict)
                stored[name] = path
    if not stored:
        yield Finding(str(folder), "no tensors in *.safetensors", "export the checkpoint")
        return
    for name in sorted(shapes.keys() - stored.keys()):
        yield Finding(name, "missing: SGLang would leave it at random", _rename_hint(name, stored))
    for name in sorted(stored.keys() - shapes.keys()):
        yield Finding(name, _why_unexpected(name), f"not a tensor of {head}: rename or delete it")
    for name in sorted(shapes.keys() & stored.keys()):
        with reading(stored[name], _AGAIN, f"{name} cannot be read"), _open(stored[name]) as file:
            yield from _one(name, shapes[name], file)


def _open(path: Path) -> Any:
    with reading(path, _AGAIN, "not a safetensors file"):
        return safe_open(path, framework="pt")


def _one(name: str, shape: tuple[int, ...], file: Any) -> Iterator[Finding]:
    view = file.get_slice(name)
    if tuple(view.get_shape()) != shape:
        yield Finding(name, f"shape {view.get_shape()}, config.json implies {list(shape)}", "export both together")
        return
    if view.get_dtype() != "BF16":
        yield Finding(name, f"stored as {view.get_dtype()}", "store bfloat16, in which the arms are compared")
    value = file.get_tensor(name)
    if not value.isfinite().all():
        yield Finding(name, "holds NaN or infinity", "go back to an earlier training checkpoint")
    elif name.endswith(("q_norm.weight", "k_norm.weight")) and (value == 1).all():
        yield Finding(name, "is exactly 1: it was never trained (bf16 parameters cannot move it)", "train fp32 masters")
    elif name.endswith("successor_codebook") and not value.any():
        yield Finding(name, "is zero: the selector was never trained", "export after training")


def _rename_hint(name: str, stored: dict[str, Path]) -> str:
    for prefix in _PREFIXES:
        if prefix + name in stored:
            return f"take the prefix {prefix!r} off"
    return "export it under this very name"


def _why_unexpected(name: str) -> str:
    if name.startswith(_BORROWED):
        return "unexpected: SGLang borrows the target's and ignores this one"
    return "unexpected: SGLang ignores it or refuses the checkpoint"

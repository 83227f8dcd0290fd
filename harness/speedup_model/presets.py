"""Hardware and model presets by name, from ``harness/speedup_model/presets/*.toml``."""

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from harness.speedup_model.roofline import Hardware
from harness.speedup_model.shape import Shape
from sglang_specbench.config import from_dict, load_toml, near_name
from sglang_specbench.errors import UserError

T = TypeVar("T", Hardware, Shape)


def hardware(name: str) -> Hardware:
    """The preset called ``name``; `UserError` with the nearest name if there is none."""
    return _preset(Hardware, "hardware.toml", name, "--hardware")


def shape(name: str, option: str = "--target", also: Iterable[str] = ()) -> Shape:
    """The model preset called ``name`` (case does not matter); `UserError` with the nearest name if there is none.

    ``also``: other words that the option takes, for the hint.
    """
    return _preset(Shape, "models.toml", name.lower(), option, also)


def tables(file: str) -> dict[str, Any]:
    """All presets of ``hardware.toml`` or ``models.toml``, by name."""
    return load_toml(Path(str(files("harness.speedup_model") / "presets" / file)))


def _preset(cls: type[T], file: str, name: str, option: str, also: Iterable[str] = ()) -> T:
    known: dict[str, Any] = tables(file)
    if name not in known:
        raise UserError(f"{option}: no preset {name!r}", near_name(name, [*known, *also]))
    return from_dict(cls, known[name], f"{file} [{name}]")

"""What `specbench check` says of a checkpoint, and the two questions that several arms ask of a config.json."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Config = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """One thing wrong: where it stands, what it does, how to fix it."""

    where: str
    problem: str
    remedy: str


def is_count(value: Any) -> bool:
    """A positive whole number (JSON's true is none)."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def power_of_two(name: str, value: Any, most: int) -> Iterator[Finding]:
    if not is_count(value) or value & (value - 1) or value > most:
        yield Finding(
            f"dflash_config.{name}",
            f"{value!r}: the walk's kernel takes a power of two up to {most}",
            "train with 4, 8 or 16 candidates",
        )

"""The fields of a server's answer, each of the type that it must have or a `Failure` that names it.

A server is not trusted to answer in the shape of SGLang 0.5.23: another version, a proxy or a fault may answer instead,
and one bad answer must fail its request and nothing else.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.schema.failure import Failure

MOST = 2**31 - 1  # counts and token ids are stored as 32-bit integers
MOST_TOKENS = 1 << 22  # of one answer
MOST_BLOCK = 1024  # positions of a verify block, so places of a histogram


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object of the answer to ``route``; `Failure` (invalid) if it is none."""

    route: str
    held: Any

    def __post_init__(self) -> None:
        if not isinstance(self.held, Mapping):
            raise Failure("invalid", f"{self.route} answered without an object: {_shown(self.held)}")

    def has(self, key: str) -> bool:
        """Is there a value, null aside."""
        return self.held.get(key) is not None

    def text(self, key: str, default: str | None = None) -> str:
        """Text that UTF-8 can hold; ``default`` where there is none."""
        value = self.held.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self._strange(key, "text")
        return value

    def count(self, key: str, most: int = MOST) -> int:
        """A whole number from 0 to ``most``."""
        value = self.held.get(key)
        if not _is_count(value, most):
            raise self._strange(key, f"a whole number from 0 to {most}")
        return int(value)

    def counts(self, key: str, longest: int) -> tuple[int, ...]:
        """A list of at most ``longest`` of them."""
        value = self.held.get(key)
        if not isinstance(value, list) or len(value) > longest or not all(_is_count(item, MOST) for item in value):
            raise self._strange(key, f"a list of at most {longest} whole numbers")
        return tuple(value)

    def counts_or_none(self, key: str) -> tuple[int, ...] | None:
        """A histogram over the places of a block; None where there is none."""
        return self.counts(key, MOST_BLOCK) if self.has(key) else None

    def seconds(self, key: str) -> float | None:
        """A time that is not negative; None where there is none."""
        value = self.held.get(key)
        if value is None:
            return None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value < math.inf:
            raise self._strange(key, "a time in seconds, 0 or more")
        return float(value)

    def table(self, key: str) -> "Fields":
        """An object; an empty one where there is none."""
        return Fields(f"{self.route}: {key}", {} if self.held.get(key) is None else self.held[key])

    def tables(self, key: str) -> list["Fields"]:
        """A list of objects."""
        value = self.held.get(key)
        if not isinstance(value, list):
            raise self._strange(key, "a list")
        return [Fields(f"{self.route}: {key}", item) for item in value]

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty where there is none."""
        value = self.held.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._strange(key, "a list of texts")
        return tuple(value)

    def _strange(self, key: str, wanted: str) -> Failure:
        seen = f"{key!r} is {_shown(self.held[key])}" if key in self.held else f"{key!r} is missing"
        return Failure("invalid", f"{self.route}: {seen}, wanted {wanted}: not the surface of SGLang 0.5.23")


def _is_count(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."

"""One chat example of the mini corpus: what a user asks, what the assistant answers, which split it is in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A single-turn conversation; `category` is its domain (arithmetic, code or prose)."""

    id: str
    category: str
    user: str
    assistant: str
    held_out: bool

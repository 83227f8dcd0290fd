"""Prompts as they are measured, and what a loader must say about the rows that it read."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One conversation: the user's turns, already in their final wording."""

    id: str
    turns: tuple[str, ...]
    category: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found. ``refusals`` forbid the set; ``notes`` go into the header's cautions."""

    rows: int
    expected: int  # 0: not fixed
    refusals: tuple[str, ...] = ()  # placeholders, wrong count, empty turns, repeated ids
    notes: tuple[str, ...] = ()  # repeated prompts, rows that differ from the pinned text
    source: str = ""  # the file read


@dataclass(frozen=True, kw_only=True)
class PromptSet:
    """A named set: its prompts in order, version and digest."""

    name: str
    title: str
    version: int
    digest: str  # sha256 hex of the canonical rows
    prompts: tuple[Prompt, ...]
    max_new_tokens: int
    ignore_eos: bool = False
    subset: str = "front"  # front | round_robin over categories
    report: Report = field(default_factory=lambda: Report(rows=0, expected=0))

    def take(self, count: int = 0, tier: str = "") -> tuple[Prompt, ...]:
        """The first ``count`` prompts (0 = all) of ``tier`` ("" = any), by the set's subset rule."""
        raise NotImplementedError

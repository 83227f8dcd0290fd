"""Prompts as they are measured, and what a loader must say about the rows that it read."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from harness.prompts.manifest import Manifest
from sglang_specbench.config import near_name
from sglang_specbench.errors import UserError

# First turn of a SPEED-Bench row whose text must be fetched from its source (Model-Optimizer specdec_bench);
# a Python format template may follow, so it is the start that counts.
PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One conversation: the user's turns, already in their final wording, after a system message or none."""

    id: str
    turns: tuple[str, ...]
    system: str = ""
    category: str = ""


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What was found. ``refusals`` forbid the set; ``notes`` belong into the cautions of its cells."""

    source: str  # the files read
    rows: int
    refusals: tuple[str, ...] = ()  # placeholders, wrong count, empty turns, repeated ids, strange categories
    notes: tuple[str, ...] = ()  # repeated prompts, text that differs from the pinned one, synthetic sets


@dataclass(frozen=True, kw_only=True)
class PromptSet:
    """A set: its manifest, its prompts in the source's order, and what was found in them."""

    manifest: Manifest
    prompts: tuple[Prompt, ...]
    report: LoadReport

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def digest(self) -> str:
        """Sha256 (hex) over the turns of all prompts."""
        return turns_digest(self.prompts)

    def take(self, count: int = 0, tier: str = "", where: str = "") -> tuple[Prompt, ...]:
        """The first ``count`` prompts (0 = all) of ``tier`` ("" = any) by the set's subset rule.

        ``round_robin`` takes one of each category in turn, in order of first appearance, as Model-Optimizer does.
        Raises `UserError` (naming ``where``: file and table) for an unknown tier or more prompts than there are.
        """
        where = where or f"prompt set {self.name}"
        chosen = [p for p in self.prompts if tier in ("", p.category)]
        if tier and not chosen:
            hint = near_name(tier, {p.category for p in self.prompts})
            raise UserError(f"{where}: tiers: no tier {tier!r} in the set", hint)
        if count > len(chosen):
            whole = f"tier {tier!r}" if tier else "the set"
            raise UserError(f"{where}: prompts: {count}, but {whole} has {len(chosen)}", "ask for fewer, or 0 for all")
        if count and self.manifest.subset == "round_robin":
            chosen = _round_robin(chosen)
        return tuple(chosen[:count] if count else chosen)

    def version(self, taken: Sequence[Prompt]) -> str:
        """What a cell records: the manifest's version and a hash of the turns taken, in order."""
        return f"v{self.manifest.version}:{turns_digest(taken)[:16]}"


def turns_digest(prompts: Sequence[Prompt]) -> str:
    """Sha256 (hex) over what is sent: the same text gives the same digest, whatever ids a copy has."""
    sent = [{"system": p.system, "turns": p.turns} if p.system else p.turns for p in prompts]
    text = json.dumps(sent, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def examine(manifest: Manifest, prompts: Sequence[Prompt], source: str) -> LoadReport:
    """Everything about ``prompts`` that forbids their use, or that a reader of a number must know."""
    checks = (_wrong_count, _placeholders, _empty_turns, _repeated_ids, _strange_categories)
    refusals = tuple(found for check in checks if (found := check(manifest, prompts)))
    notes = tuple(found for check in (_repeats, _other_text, _synthetic) if (found := check(manifest, prompts)))
    return LoadReport(source=source, rows=len(prompts), refusals=refusals, notes=notes)


def _wrong_count(manifest: Manifest, prompts: Sequence[Prompt]) -> str:
    wrong = manifest.rows not in (0, len(prompts)) or not prompts
    return f"{len(prompts)} rows, not {manifest.rows or 'any'}" if wrong else ""


def _placeholders(_: Manifest, prompts: Sequence[Prompt]) -> str:
    bad = [p for p in prompts if any(turn.startswith(PLACEHOLDER) for turn in p.turns)]
    return _count(bad, len(prompts), "are placeholders, not prompts")


def _empty_turns(_: Manifest, prompts: Sequence[Prompt]) -> str:
    bad = [p for p in prompts if not p.turns or not all(turn.strip() for turn in p.turns)]
    return _count(bad, len(prompts), "have an empty turn")


def _repeated_ids(_: Manifest, prompts: Sequence[Prompt]) -> str:
    seen = Counter(p.id for p in prompts)
    return _count([p for p in prompts if seen[p.id] > 1], len(prompts), "share an id")


def _strange_categories(manifest: Manifest, prompts: Sequence[Prompt]) -> str:
    allowed = (*manifest.categories, "") if manifest.categories else ()
    bad = [p for p in prompts if allowed and p.category not in allowed]
    return _count(bad, len(prompts), f"have a category other than {', '.join(manifest.categories)}")


def _repeats(_: Manifest, prompts: Sequence[Prompt]) -> str:
    seen = Counter((p.system, p.turns) for p in prompts)
    again = [p for p in prompts if seen[p.system, p.turns] > 1]
    return _count(again, len(prompts), "repeat another prompt word for word")


def _other_text(manifest: Manifest, prompts: Sequence[Prompt]) -> str:
    digest = turns_digest(prompts)
    if manifest.sha256 in ("", digest):
        return ""
    return f"the text differs from the pinned one: sha256 {digest[:16]}, not {manifest.sha256[:16]}"


def _synthetic(manifest: Manifest, _: Sequence[Prompt]) -> str:
    return f"{manifest.title}: a stand-in, not the set it is named after" if manifest.synthetic else ""


def _count(bad: Sequence[Prompt], total: int, what: str) -> str:
    return f"{len(bad)} of {total} rows {what}, the first {bad[0].id!r}" if bad else ""


def _round_robin(prompts: Sequence[Prompt]) -> list[Prompt]:
    by_category: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        by_category.setdefault(prompt.category, []).append(prompt)
    return [p for rank in zip_longest(*by_category.values()) for p in rank if p is not None]

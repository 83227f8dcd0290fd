"""Notes on a plan: what its sweep allows, and its author may not expect. None of them stops a run."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from harness.schema.cell import Cell
from harness.sweep.sweep import AR, Sweep
from sglang_specbench.arms import ARMS


def notes(sweep: Sweep, cells: Iterable[Cell]) -> tuple[str, ...]:
    """One line for arms without AR beside them, each concurrency out of reach, each unused drafter."""
    listed = list(cells)
    return (*_without_ar(sweep, listed), *_too_few(sweep, listed), *_unused(sweep))


def _without_ar(sweep: Sweep, cells: list[Cell]) -> Iterator[str]:
    """A speedup is taken over AR of the same allocation, prompts, temperature and concurrency."""
    measured = {_place(cell) for cell in cells if cell.arm == AR}
    alone = [cell for cell in cells if cell.arm != AR and _place(cell) not in measured]
    if alone:
        arms = ", ".join(dict.fromkeys(cell.arm for cell in alone))
        yield f'{sweep.where}: no arm "{AR}" beside {arms}: speedups will be missing (add "{AR}" to the panel)'


def _too_few(sweep: Sweep, cells: list[Cell]) -> Iterator[str]:
    """As many requests are in flight as there are prompts left, at most."""
    short = dict.fromkeys((c.prompt_set, c.tier, c.prompts, c.concurrency) for c in cells if c.prompts < c.concurrency)
    for name, tier, prompts, concurrency in short:
        place = f"{name}/{tier}" if tier else name
        yield (
            f"{sweep.where}: concurrency {concurrency} is out of reach of the {prompts} prompts of {place}: "
            "no block times there (take more prompts)"
        )


def _place(cell: Cell) -> Cell:
    """The AR cell that ``cell`` is divided by."""
    return replace(cell, arm=AR, proposal="none", draft_digest="", replica=0)


def _unused(sweep: Sweep) -> Iterator[str]:
    used = {(t, ARMS[a].checkpoint) for panel in sweep.panel for t in sweep.targets_of(panel) for a in panel.arms}
    named = [(target, name) for target, spec in sweep.target.items() for name in spec.drafters]
    for target, name in named:
        if (target, name) not in used:
            key = f"target.{target}.drafters.{name}"
            yield f"{sweep.where}: {key}: no arm of a panel uses it (remove it, or add an arm that does)"

"""Find, read and check prompt sets. No network: `specbench data fetch` is the only thing that downloads."""

from collections.abc import Sequence
from pathlib import Path

from harness.cell import Cell
from harness.prompt_set import Prompt, PromptSet


class MissingSet(Exception):
    """A set that cannot be used here: ``str()`` is the reason and the command that mends it."""


def load(name: str, data_dirs: Sequence[Path] = ()) -> PromptSet:
    """Prompt set ``name`` from the first of ``data_dirs``, the user's cache folder and the package that has it.

    Raises `MissingSet` if it is nowhere or its rows are refused; `UserError` for an unknown name.
    """
    raise NotImplementedError


def for_cell(cell: Cell, data_dirs: Sequence[Path] = ()) -> tuple[Prompt, ...]:
    """The prompts of ``cell`` in the order in which they are sent; `MissingSet` as `load`."""
    raise NotImplementedError

"""Prompts made ready to send: read, cut to the cell, rendered to token ids; each combination once per run."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.prompts import load as prompts
from harness.prompts.chat_template import Renderer, ids_hash, messages
from harness.prompts.prompt_set import Prompt
from harness.schema.cell import Cell
from sglang_specbench.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A prompt and the token ids of its first turn."""

    prompt: Prompt
    first_ids: Sequence[int]
    first_hash: str  # `render.ids_hash` of them


@dataclass(frozen=True, kw_only=True)
class Ready:
    """The conversations of a cell in order, and what their set's loader noted."""

    conversations: tuple[Conversation, ...]
    notes: tuple[str, ...]


class Desk:
    """For one target."""

    def __init__(self, target: Path, data_dirs: Sequence[Path]) -> None:
        self._target = target
        self._data_dirs = data_dirs
        self._ready: dict[tuple[str, ...], Ready] = {}

    @cached_property
    def renderer(self) -> Renderer:
        return Renderer(self._target)

    def get(self, cell: Cell) -> Ready:
        """Raises `prompts.MissingSet` if the set is not here, or the target's chat template does not take it."""
        key = (cell.prompt_set, cell.prompt_version, cell.tier)
        if key not in self._ready:
            taken = prompts.for_cell(cell, self._data_dirs)
            self._ready[key] = Ready(
                conversations=tuple(self._conversation(prompt) for prompt in taken),
                notes=prompts.load(cell.prompt_set, self._data_dirs).report.notes,
            )
        return self._ready[key]

    def _conversation(self, prompt: Prompt) -> Conversation:
        try:
            rendered = self.renderer.render(messages(prompt))
        except UserError as error:
            raise prompts.MissingSet(f"prompt {prompt.id!r}: {error}") from None
        ids = array("I", rendered)  # 4 bytes a token: sets of 32k prompts stay small
        return Conversation(prompt=prompt, first_ids=ids, first_hash=ids_hash(ids))

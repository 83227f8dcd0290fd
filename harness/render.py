"""From messages to token ids with the target's own chat template, thinking off; and the hashes of both.

The only module that loads a tokenizer (transformers, imported on first use).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

RECIPE = "chat-template add_generation_prompt enable_thinking=False"


class Renderer:
    """Chat template and tokenizer of one target folder."""

    def __init__(self, folder: Path) -> None:
        raise NotImplementedError

    def render(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of a conversation that the assistant is to answer."""
        raise NotImplementedError


def messages(turns: Sequence[str], answers: Sequence[str]) -> list[dict[str, str]]:
    """User turns with the live answers between them: ``len(answers) + 1`` user turns are used."""
    raise NotImplementedError


def ids_hash(ids: Sequence[int]) -> str:
    """Sha256 (hex) of token ids."""
    raise NotImplementedError


def render_digest(folder: Path) -> str:
    """Recipe and sha256 over tokenizer files and chat template: what a cell's ``render`` holds."""
    raise NotImplementedError

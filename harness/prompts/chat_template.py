"""From messages to token ids with the target's own chat template, thinking off; and the hashes of both.

The only module of the harness that loads a tokenizer (transformers, imported when the first one is made).
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.prompts.prompt_set import Prompt
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import reading

RECIPE = "chat template, generation prompt, enable_thinking=False"
_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
)


class Renderer:
    """Chat template and tokenizer of one target folder; `UserError` if it has none."""

    def __init__(self, folder: Path) -> None:
        from transformers import PreTrainedTokenizerFast  # AutoTokenizer would import torch

        self._folder = folder
        with reading(folder, "download the target's tokenizer files too", "no tokenizer there"):
            self._tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)

    def render(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of a conversation that the assistant is to answer next.

        `UserError` if the template fails on it, or leaves the system message of a first turn out.
        """
        opening = len(messages) == 2 and messages[0]["role"] == "system"  # later turns are rendered under the clock
        with reading(self._folder, "mind which roles it takes", "its chat template fails"):
            ids = self._ids(list(messages))
            left_out = opening and ids == self._ids(list(messages[1:]))
        if left_out:
            hint = "take prompts without one, or a target that reads it"
            raise UserError(f"{self._folder}: its chat template leaves the system message out", hint)
        return ids

    def _ids(self, messages: list[Mapping[str, str]]) -> list[int]:
        ids = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, enable_thinking=False, tokenize=True, return_dict=False
        )
        return [int(i) for i in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of an answer, special tokens left out: what stands in the next turn's conversation."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))


def messages(prompt: Prompt, answers: Sequence[str] = ()) -> list[dict[str, str]]:
    """The first ``len(answers) + 1`` user turns with the live answers between them, after the system message."""
    talk = [{"role": "system", "content": prompt.system}] if prompt.system else []
    talk.append({"role": "user", "content": prompt.turns[0]})
    for answer, turn in zip(answers, prompt.turns[1:], strict=False):
        talk += [{"role": "assistant", "content": answer}, {"role": "user", "content": turn}]
    return talk


def ids_hash(ids: Sequence[int]) -> str:
    """Sha256 (hex) of token ids, each as four bytes, least significant first."""
    return hashlib.sha256(b"".join(i.to_bytes(4, "little") for i in ids)).hexdigest()


def render_digest(folder: Path) -> str:
    """Sha256 (hex) over recipe, tokenizer files and chat template: what a cell's ``render`` holds."""
    total = hashlib.sha256(RECIPE.encode())
    for path in (folder / name for name in _FILES):
        if path.is_file():
            total.update(os.fsencode(f"\0{path.name}\0") + path.read_bytes())
    return total.hexdigest()


def lengths(prompts: Sequence[Prompt], renderer: Renderer) -> dict[str, list[int]]:
    """Tokens of every rendered first turn, by category."""
    found: dict[str, list[int]] = defaultdict(list)
    for prompt in prompts:
        found[prompt.category].append(len(renderer.render(messages(prompt))))
    return dict(found)

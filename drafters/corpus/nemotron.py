"""The paper's corpus: prompts of NVIDIA's Nemotron Post-Training Dataset v2, streamed from the hub.

Knows which splits the paper trains on (code, math, STEM, chat; no multilingual ones) and how a row becomes a
conversation. Its answers are placeholders: `specbench generate` replaces every one by the target's own.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from drafters.corpus.conversation import Conversation
from sglang_specbench.foreign_file import reading

DATASET = "nvidia/Nemotron-Post-Training-Dataset-v2"
SPLITS = ("code", "math", "stem", "chat")


def stream(splits: tuple[str, ...] = SPLITS, limit: int | None = None, **source: Any) -> Iterator[Conversation]:
    """At most ``limit`` conversations of each split, in the data set's own order.

    ``source`` goes to ``datasets.load_dataset`` (``path`` and ``data_files`` read a local copy).
    """
    import datasets  # half a second, and only this corpus needs it

    source = {"path": DATASET, **source}
    for split in splits:
        with reading(f"{source['path']}[{split}]", "is the hub within reach? --prompts reads a file"):
            rows = datasets.load_dataset(split=split, streaming=True, **source)
        for number, row in enumerate(islice(rows, limit)):
            yield conversation({"category": split, **row}, f"{source['path']}[{split}] row {number}")


def conversation(row: dict[str, Any], where: str) -> Conversation:
    """A row with ``uuid`` and ``messages``; turns before the first user turn are kept only when they say something."""
    with reading(where, "check its columns: uuid, category, messages", "not a row of this data set"):
        messages = [m for m in row["messages"] if m["role"] != "system" or m["content"].strip()]
        return Conversation.from_row({"id": row["uuid"], "category": row["category"], "messages": messages}, where)

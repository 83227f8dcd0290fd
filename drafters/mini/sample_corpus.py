"""The sample corpus that ships: `python -m drafters.mini.sample_corpus` writes ``drafters/corpus/sample.jsonl`` anew.

Questions of arithmetic alone, of the problems that the mini target was trained on: it ends every answer, so that the
whole corpus is generated in seconds.
"""

import itertools
import json

from drafters.corpus.sample import SAMPLE
from drafters.mini import arithmetic
from drafters.mini.corpus import SEED

ROWS = 70


def text() -> str:
    """The file's text: one conversation a line, each a question."""
    taken = itertools.islice((e for e in arithmetic.examples(SEED) if not e.held_out), ROWS)
    rows = [{"id": e.id, "category": e.category, "messages": [{"role": "user", "content": e.user}]} for e in taken]
    return "".join(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    SAMPLE.write_text(text(), encoding="utf-8")

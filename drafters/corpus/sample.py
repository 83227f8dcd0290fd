"""The sample corpus that ships: 70 conversations that end in a question, for the mini target to answer.

Sums, differences, products and counts in words, made by `drafters.mini.arithmetic` (our own, Apache-2.0): enough for a
first round of training, in half a minute. Written by ``python -m drafters.mini.sample_corpus``.
"""

from pathlib import Path

SAMPLE = Path(__file__).with_name("sample.jsonl")

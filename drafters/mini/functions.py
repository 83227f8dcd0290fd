"""Functions of Python's standard library, cut into completions: the mini corpus's middle-entropy domain.

Knows: which source files count, how a function becomes one or more (first lines, rest) pairs, and that whole
source files are held out (`HELD_OUT_FILES`), so no training example shares a file with a held-out one.
The text depends on the running interpreter's patch version; the manifest records both. Licence: PSF.
Not here: chat rendering, tokenization, the other domains.
"""

from __future__ import annotations

import ast
import sysconfig
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path

from drafters.mini.example import Example

SKIPPED_FOLDERS = {"test", "tests", "idlelib", "site-packages", "dist-packages", "lib2to3", "__pycache__", "encodings"}
HELD_OUT_FILES = {
    "argparse.py",
    "calendar.py",
    "csv.py",
    "fractions.py",
    "heapq.py",
    "shlex.py",
    "textwrap.py",
    "zipfile.py",
}
HEAD_CHARACTERS = 160
BODY_CHARACTERS = 600  # about 220 tokens of the mini tokenizer
SHORTEST_BODY = 80


def source_files() -> list[Path]:
    """The standard library's Python files below the interpreter's own folder, sorted by relative path."""
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix())
    return [path for path in files if not SKIPPED_FOLDERS & set(path.relative_to(root).parts)]


def functions(source: str) -> Iterator[str]:
    """Dedented text of every function and method of a module, nested ones only inside their parents."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # old escapes in string literals of the library itself
        module = ast.parse(source)
    lines = source.splitlines()
    pending: list[ast.stmt] = list(reversed(module.body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
        elif isinstance(node, ast.ClassDef):
            pending.extend(reversed(node.body))


def take(lines: list[str], characters: int) -> tuple[str, list[str]]:
    """As many whole lines as fit into `characters` (at least one), and the lines left."""
    size, count = 0, 0
    while count < len(lines) and (count == 0 or size + len(lines[count]) < characters):
        size += len(lines[count]) + 1
        count += 1
    return "\n".join(lines[:count]), lines[count:]


def completions(function: str) -> Iterator[tuple[str, str]]:
    """(request, answer) pairs that walk through one function; a long one gives several."""
    head, rest = take(function.splitlines(), HEAD_CHARACTERS)
    request = f"Complete this function:\n{head}"
    while rest:
        body, rest = take(rest, BODY_CHARACTERS)
        if SHORTEST_BODY <= len(body) <= BODY_CHARACTERS and len(request) <= 2 * HEAD_CHARACTERS:
            yield request, body
        tail, _ = take(body.splitlines()[-4:], HEAD_CHARACTERS)
        request = f"Continue this code:\n{tail}"


def examples() -> Iterator[Example]:
    """Every completion of the standard library, in file order."""
    number = 0
    for path in source_files():
        source = path.read_text(encoding="utf-8", errors="replace")
        for function in functions(source):
            for user, assistant in completions(function):
                yield Example(f"code-{number}", "code", user, assistant, path.name in HELD_OUT_FILES)
                number += 1

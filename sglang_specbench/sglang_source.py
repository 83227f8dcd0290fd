"""SGLang read as text: which messages it can print, what its functions take, which flags and names it has.

Nothing of it is imported, so that a release can be looked at that is not installed, on a machine that could not run it.
``root`` is its folder ``sglang``, installed or out of an unpacked wheel.
"""

import ast
import functools
import importlib.util
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from sglang_specbench.errors import UserError

FOLDERS = ("speculative", "arg_groups", "plugins", "managers", "model_executor/model_runner_components")
FILES = ("environ.py", "models/dflash.py", "models/lilicorr.py", "models/dspark.py", "utils/hf_transformers_utils.py")
# what a placeholder of a message may stand for
VALUES = (
    "X", "1", "True", "False", "greedy", "sampled", "greedy draft", "sampling", "2048", "0", "compact", "specbench",
    "SGLANG_X", "target verify", "target decode", "draft verify", "[1, 2]", "CUDA graph",
)  # fmt: skip
SHORTEST = 12  # characters of a message; shorter strings are keys and names


def installed() -> Path:
    """The folder of the installed SGLang; `UserError` without one."""
    spec = importlib.util.find_spec("sglang")
    if spec is None or not spec.submodule_search_locations:
        raise UserError("SGLang is not installed", "pip install 'sglang-specbench[serve]'")
    return Path(spec.submodule_search_locations[0])


@functools.cache
def messages(root: Path) -> tuple[tuple[str, str], ...]:
    """(file, message) of every string handed to a logger or raised, with ``%s`` for what is filled in."""
    srt = root / "srt"
    paths = [path for folder in FOLDERS for path in sorted((srt / folder).rglob("*.py"))]
    paths += [path for name in FILES if (path := srt / name).is_file()]
    return tuple((path.name, text) for path in paths for text in _arguments(_tree(path)))


def printable(root: Path, pattern: str) -> bool:
    """Can this SGLang print a line that ``pattern`` matches."""
    return any(
        re.search(pattern, text.replace("%s", value)) or re.search(pattern, _mixed(text))
        for _, text in messages(root)
        for value in (VALUES if "%s" in text else ("",))
    )


def alternatives(pattern: str) -> list[str]:
    """A pattern with one ``(a|b)``, written out; each must be there."""
    found = re.search(r"\(((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\|(?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*)\)", pattern)
    if not found:
        return [pattern]
    options = re.split(r"\|(?![^(]*\))", found.group(1))
    return [text for o in options for text in alternatives(pattern[: found.start()] + o + pattern[found.end() :])]


def message(node: ast.expr) -> str:
    """The text of an argument, with ``%s`` for what is filled in; "" if it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[.\d]*[sdfr]", "%s", node.value)
    if isinstance(node, ast.JoinedStr):
        parts = (v.value if isinstance(v, ast.Constant) else "%s" for v in node.values)
        return "".join(str(part) for part in parts)
    return ""


def signature(root: Path, target: str) -> str:
    """What ``module:Class.function`` takes, as `patching.signature_of` writes it; a constant's source; "" if gone."""
    module, _, path = target.partition(":")
    file = root.parent / Path(*module.split("."))
    source = file.with_suffix(".py") if file.with_suffix(".py").is_file() else file / "__init__.py"
    if not source.is_file():
        return ""
    body: list[ast.stmt] = _tree(source).body
    for name in path.split(".")[:-1]:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name), [])
    return _of_name(root, body, path.rpartition(".")[2])


@functools.cache
def words(root: Path) -> frozenset[str]:
    """Every name and flag in the source, comments aside: fields, attributes, flags, environment variables."""
    found: set[str] = set()
    for path in sorted((root / "srt").rglob("*.py")):
        text = re.sub(r"(?m)(^|\s)#.*$", "", path.read_text(encoding="utf-8"))
        found.update(re.findall(r"--[a-z][\w-]+|[A-Za-z_]\w*", text))
    return frozenset(found)


def _of_name(root: Path, body: list[ast.stmt], name: str) -> str:
    """A definition, an import from SGLang, or an import from elsewhere: the first that there is."""
    nodes = [inner for outer in body for inner in _unwrapped(outer)]
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return f"({ast.unparse(_bare(node.args))})"
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return ast.unparse(node.value)
    named = [(n.module, a.name) for n in nodes if isinstance(n, ast.ImportFrom) and n.module and not n.level
             for a in n.names if (a.asname or a.name) == name]  # fmt: skip
    ours = [f"{module}:{original}" for module, original in named if module.startswith("sglang.")]
    found = next((text for target in ours if (text := signature(root, target))), "")
    return found or next((f"from {module}" for module, _ in named), "")


def _unwrapped(node: ast.stmt) -> Iterator[ast.stmt]:
    """``node``, or what stands in its branches: imports are often tried, or depend on the device."""
    yield node
    for block in ("body", "orelse", "finalbody"):
        if isinstance(node, ast.If | ast.Try):
            for inner in getattr(node, block, ()):
                yield from _unwrapped(inner)
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            for inner in handler.body:
                yield from _unwrapped(inner)


def _bare(arguments: ast.arguments) -> ast.arguments:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for argument in every:
        if argument is not None:
            argument.annotation = None
    return arguments


def _arguments(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (text for value in node.args if len(text := message(value)) > SHORTEST)


def _mixed(text: str) -> str:
    """A capture line has a role, a kind of graph and sizes in it, in this order."""
    return text.replace("%s", "draft verify", 1).replace("%s", "CUDA graph", 1).replace("%s", "[1, 2]", 1)


def _tree(path: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # theirs: escapes in docstrings
        warnings.simplefilter("ignore", DeprecationWarning)
        return ast.parse(path.read_text(encoding="utf-8"))

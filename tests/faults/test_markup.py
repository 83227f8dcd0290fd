"""No text from outside is read as markup: no code of ours can ask rich to, and none of the ways that it has does."""

import ast
from pathlib import Path

import pytest
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

from harness.measure.progress import bar
from sglang_specbench.console import Console

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "sglang_specbench" / "console.py"
# what of rich takes text as it is, or as the console that renders it does; others (Panel, Spinner, Prompt ...) do not
HARMLESS = {
    "rich.table": {"Column", "Table"},
    "rich.text": {"Text"},
    "rich.progress": {
        "BarColumn", "MofNCompleteColumn", "Progress", "SpinnerColumn", "TextColumn", "TimeElapsedColumn",
        "TimeRemainingColumn",
    },
}  # fmt: skip
READS_MARKUP = {"from_markup", "render_markup", "escape", "rprint", "track", "get_console", "rule", "status", "input"}
HOSTILE = "[/red] [bold]x[/bold] [link=http://evil]y[/link] :smile: [a-z] \\["


def sources():
    packages = ("sglang_specbench", "harness", "drafters", "plots", "bench")
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


def name_of(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def faults(path):
    """What in the file could have rich read markup."""
    for node in ast.walk(ast.parse(path.read_text())):
        where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (f"{where}: import {a.name}" for a in node.names if a.name.split(".")[0] == "rich")
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rich":
            names = {alias.name for alias in node.names} - HARMLESS.get(node.module, set())
            yield from (f"{where}: from {node.module} import {name}" for name in names)
        if isinstance(node, ast.Call):
            given = {k.arg: k.value for k in node.keywords}
            name, markup = name_of(node), given.get("markup")
            plain = isinstance(markup, ast.Constant) and markup.value is False
            if markup is not None and not plain:
                yield f"{where}: markup= is not False"
            if name == "TextColumn" and not plain:
                yield f"{where}: TextColumn without markup=False"
            if name == "Progress" and "console" not in given:
                yield f"{where}: Progress on rich's own console"
            rich_mode = given.get("rich_markup_mode")
            if name == "Typer" and not (isinstance(rich_mode, ast.Constant) and rich_mode.value is None):
                yield f"{where}: Typer that reads markup in help"
            if name in READS_MARKUP and isinstance(node.func, ast.Attribute) and "console" in ast.unparse(node.func):
                yield f"{where}: {ast.unparse(node.func)}"
            if name in ("from_markup", "secho"):
                yield f"{where}: {name}"


def test_no_code_of_ours_has_rich_read_markup():
    paths = sources()
    assert len(paths) > 200
    assert [fault for path in paths if path != OURS for fault in faults(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        "from rich import print", "import rich", "from rich.console import Console", "from rich.panel import Panel",
        "Progress()", "TextColumn('{a}')", "TextColumn('{a}', markup=True)", "console.print(x, markup=yes)",
        "Text.from_markup(x)", "typer.Typer()", "self.console.rule(x)",
    ],
)  # fmt: skip
def test_the_walk_sees_each_way(tmp_path, monkeypatch, code):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "a.py").write_text(code)
    assert list(faults(tmp_path / "a.py"))


def test_each_way_that_is_left_prints_text_as_it_is(capsys):
    console = Console(width=200)
    console.print(HOSTILE, soft_wrap=True)
    console.print(Text.assemble("a ", (HOSTILE, "bold")))
    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    console.print(table)
    with Progress(TextColumn("{task.description}", markup=False), console=console) as shown:
        shown.add_task(HOSTILE, total=1)
    with bar(console) as quiet:
        quiet.add_task(HOSTILE, total=1)
        quiet.console.print(HOSTILE, soft_wrap=True)
    assert capsys.readouterr().out.count(HOSTILE) == 7

"""The three paths through the docs, followed to the letter: the commands of a page, in order, as they stand there.

A page's ``sh`` blocks are its commands; ``text`` blocks need a network or a GPU. Each page runs in a copy of what a
clone holds. For the maintainer's, CI stands in for `specbench run`; with --long it is the real one.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sglang_specbench.cli import COMMANDS, _load
from tests import synthetic_run as synthetic

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
NOT_CLONED = (".git", ".venv", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
OUTPUTS = ("out", "build", "checkpoints")  # of commands, at the top: a package has a room of that name
SPECBENCH = """#!{python}
import shutil, sys
if sys.argv[1] == "run" and {stand_in!r}:
    shutil.copytree({stand_in!r}, sys.argv[sys.argv.index("--out") + 1])
else:
    from sglang_specbench.cli import main
    main()
"""


def commands(page):
    """The script that the ``sh`` blocks of ``page`` are."""
    blocks = re.findall(r"^( *)```sh\n(.*?)^ *```$", page.read_text(), re.S | re.M)
    return "\n".join(textwrap.dedent(block) for _, block in blocks)


def lines(page):
    """Words of every call of specbench in ``page``, those in ``text`` blocks included."""
    text = "\n".join(re.findall(r"^ *```(?:sh|text)\n(.*?)^ *```$", page.read_text(), re.S | re.M))
    calls = [line.split("#")[0].strip() for line in text.splitlines()]
    return [shlex.split(call)[1:] for call in calls if call.startswith("specbench ")]


def parse(command, words):
    """`typer.Exit` or a usage error unless ``command`` takes ``words``; nothing is called."""
    context = command.make_context(command.name, list(words))
    if getattr(command, "commands", None):
        parse(command.commands[words[0]], words[1:])
    context.close()


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_every_command_line_of_a_page_is_one(page):
    for name, *words in lines(page):
        assert name in COMMANDS
        parse(_load(name), words)


def test_a_flag_that_is_gone_is_found():
    with pytest.raises(Exception, match="No such option"):
        parse(_load("gate"), ["run", "--nosuch"])


def follow(page, tree, stand_in=""):
    """Run the commands of ``page`` in ``tree``, a copy of what a clone holds; all that they printed."""
    never = shutil.ignore_patterns(*NOT_CLONED)
    shutil.copytree(ROOT, tree, ignore=lambda at, names: {*never(at, names), *(OUTPUTS if Path(at) == ROOT else ())})
    tool = tree / "bin" / "specbench"
    tool.parent.mkdir()
    tool.write_text(SPECBENCH.format(python=sys.executable, stand_in=str(stand_in)))
    tool.chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}", "PYTHONPATH": str(tree),
        "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "COLUMNS": "100",
    }  # fmt: skip
    script = commands(ROOT / "docs" / page)
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script], cwd=tree, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.mark.sglang
@pytest.mark.slow
def test_the_readers_path(tmp_path):
    said = follow("reproduce.md", tmp_path / "clone")
    assert "missing model: Qwen/Qwen3-8B (to get it: hf download Qwen/Qwen3-8B)" in said
    assert said.count("preflight ") >= 3
    assert "not checked: memory, kernels" in said


def check_maintained(tree, said):
    assert "throughput is never decided" not in said  # the sweep has two repeats, and tau alone is judged
    assert re.search(r"keep or commit with it: bench/accepted/cells, plan.json, sweep.toml", said)
    assert said.count("### specbench gate: ok") == 2
    assert "Gate: ok, against accepted." in (tree / "out/site/index.html").read_text()


@pytest.mark.slow
def test_the_maintainers_path_with_a_stand_in_for_the_runs(tmp_path):
    cells = [
        synthetic.cell("mini", arm, "mini", prompts=60, repeat=repeat) for arm in ("ar", "dflash") for repeat in (0, 1)
    ]
    run = synthetic.write(tmp_path / "run", synthetic.run(cells))
    (run / "sweep.toml").write_text('name = "mine"')
    said = follow("maintainer.md", tmp_path / "clone", stand_in=run)
    check_maintained(tmp_path / "clone", said)


@pytest.mark.sglang
@pytest.mark.long
def test_the_maintainers_path(tmp_path):
    said = follow("maintainer.md", tmp_path / "clone")
    check_maintained(tmp_path / "clone", said)


@pytest.mark.sglang
@pytest.mark.torch
@pytest.mark.long
def test_the_authors_path(tmp_path):
    said = follow("author.md", tmp_path / "clone")
    assert "70 answered" in said
    assert re.search(r"training: the first step took .* s: at most about .* left", said)
    assert "checkpoints/toy: nothing wrong" in said
    assert "mini/toy: pass" in said

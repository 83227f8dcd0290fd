"""docs/results-format.md: names every field, and its lines of pandas give the tables' own numbers."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from harness.schema.header import Header
from harness.schema.request import Row
from harness.stats.estimates import measure
from harness.stats.setting import Setting
from harness.store import run as store
from tests import synthetic_run as synthetic

PAGE = (Path(__file__).parents[1] / "docs" / "results-format.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("name", [f.name for of in (Header, Row) for f in fields(of)] + ["replica", "repeat", "seed"])
def test_every_field_is_named(name):
    assert f"`{name}`" in PAGE


def test_the_lines_of_pandas_give_the_tables_own_tau_and_throughput(tmp_path):
    cells = [synthetic.cell("T", arm, name, prompts=8) for arm in ("ar", "dflash") for name in ("gsm8k", "mt-bench")]
    run = synthetic.write(tmp_path / "run", synthetic.run(cells))
    found: dict[str, object] = {}
    exec(CODE.replace("RUN", str(run)), found)
    table, frames = found["table"], store.load(run)
    results = measure(frames.cells, frames.rows, "run", cells)
    assert len(table) == len(cells)
    for cell in cells:
        place = Setting(target="T", arm=cell.arm, benchmark=cell.prompt_set, temperature=0.0)
        assert table.throughput[cell.id] == pytest.approx(results.get(place, "throughput").value, rel=1e-12)
        if cell.arm == "ar":
            assert table.tau.isna()[cell.id]
        else:
            assert table.tau[cell.id] == pytest.approx(results.get(place, "tau").value, rel=1e-12)


def test_it_is_five_statements_after_the_imports():
    assert len(ast.parse(CODE).body) == 6

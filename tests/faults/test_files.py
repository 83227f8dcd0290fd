"""Files that somebody else wrote, wrong in every way that was seen: one line naming the file, exit code 2."""

import gzip
import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.gate import history
from harness.prompts import load as prompts
from harness.sweep import plan
from sglang_specbench import checkpoint
from sglang_specbench.errors import UserError
from sglang_specbench.foreign_file import DOCUMENT_BYTES, TOML_BYTES, read_json, read_toml
from tests.harness.made import TARGET, model, sweep_text, toy

MANIFEST = 'name = "{0}"\ntitle = "T"\nversion = 1\nlicence = "none"\nmax_new_tokens = 32\n'
ROWS = {
    "a turn a number": ('{"turns": ["a", 3]}', "turns[1]: a value of type int"),
    "turns null": ('{"turns": null}', "turns: null"),
    "turns an object": ('{"turns": {"a": "b"}}', "turns: an object"),
    "messages null": ('{"messages": null}', "messages: null"),
    "a message null": ('{"messages": [null]}', "messages[0]: null"),
    "parts": ('{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}', "content: a list"),
    "an assistant's turn": (
        '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}',
        "messages[1]: a turn of role 'assistant': only the user's are sent",
    ),
    "a tool's turn": ('{"messages": [{"role": "tool", "content": "a"}]}', "a turn of role 'tool'"),
    "a late system message": (
        '{"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]}',
        "messages[1]: a turn of role 'system'",
    ),
    "tools": ('{"turns": ["a"], "tools": [{"name": "f"}]}', "tools: they would not be sent"),
    "tool calls": (
        '{"messages": [{"role": "user", "content": "a", "tool_calls": [1]}]}',
        "messages[0].tool_calls: it would not be sent",
    ),
    "an id a list": ('{"id": [1], "turns": ["a"]}', "id: a list"),
    "a category a number": ('{"category": 1.5, "turns": ["a"]}', "category: a value of type float"),
    "half a surrogate pair": ('{"turns": ["\\ud83d"]}', "half of a surrogate pair (U+D83D)"),
    "NaN": ('{"id": NaN, "turns": ["a"]}', "NaN is no number"),
    "a long number": ('{"id": ' + "9" * 5000 + ', "turns": ["a"]}', "a number of 5000 digits"),
    "deep": ('{"turns": ' + "[" * 200 + "]" * 200 + "}", "nested more than 100 deep"),
    "very deep": ("[" * 100_000, "nested more than 100 deep"),
    "Latin-1": (b'{"turns": ["\xe9"]}', "not UTF-8: byte 12 is 0xe9"),
}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "s.toml").write_text(MANIFEST.format("s"))
    return folder


@pytest.mark.parametrize("kind", ROWS)
def test_each_row_is_named_with_file_and_line(specbench, data, kind):
    row, message = ROWS[kind]
    line = row if isinstance(row, bytes) else row.encode()
    (data / "s.jsonl").write_bytes(b'{"turns": ["fine"]}\n' + line + b"\n")
    said = specbench.refused("data", "check", "s", "--data-dir", data)
    assert "s.jsonl:2: " in said
    assert message in said


def test_a_string_is_one_turn_and_a_byte_order_mark_is_none(data):
    (data / "s.jsonl").write_bytes(b'\xef\xbb\xbf{"turns": "Write a poem"}\n')
    assert [p.turns for p in prompts.load("s", [data]).prompts] == [("Write a poem",)]


def test_a_system_message_is_kept_and_changes_the_digest(data):
    row = {"messages": [{"role": "system", "content": "rule"}, {"role": "user", "content": "a"}]}
    (data / "s.jsonl").write_text(json.dumps(row))
    ruled = prompts.load("s", [data])
    assert (ruled.prompts[0].system, ruled.prompts[0].turns) == ("rule", ("a",))
    (data / "s.jsonl").write_text(json.dumps({"turns": ["a"]}))
    assert prompts.load("s", [data]).digest != ruled.digest


@pytest.mark.parametrize("cut", [1, 9, 20, -1])
def test_a_cut_gzip_is_named(specbench, data, cut):
    packed = gzip.compress(b'{"turns": ["a"]}\n' * 50)
    (data / "s.jsonl.gz").write_bytes(packed[:cut])
    assert "s.jsonl.gz: " in specbench.refused("data", "check", "s", "--data-dir", data)


def test_a_gzip_that_does_not_end_is_bounded(specbench, data, monkeypatch):
    monkeypatch.setattr("sglang_specbench.foreign_file.LINE_BYTES", 1 << 20)
    (data / "s.jsonl.gz").write_bytes(gzip.compress(b" " * (64 << 20)))
    assert "more than 1,048,576 bytes a line" in specbench.refused("data", "check", "s", "--data-dir", data)


@pytest.mark.parametrize("column", [[[1]], [{"a": 1}], [b"\xff"], [None]])
def test_a_parquet_column_of_another_type_is_named(specbench, data, column):
    pq.write_table(pa.table({"turns": column}), data / "s.parquet")
    assert "s.parquet: line 1: row 0: turns" in specbench.refused("data", "check", "s", "--data-dir", data)


def test_a_parquet_file_that_is_none(specbench, data):
    (data / "s.parquet").write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")
    assert "s.parquet: not a Parquet file" in specbench.refused("data", "check", "s", "--data-dir", data)


SWEEPS = {
    "a NUL": ("path = ", 'path = "a\\u0000b" # ', "holds a NUL"),
    "a long number": ("seeds = [42]", "seeds = [" + "9" * 5000 + "]", "not valid TOML"),
    "a wide number": ("seeds = [42]", "seeds = [" + "9" * 30 + "]", "a number of 100 bits"),
    "deep": ("seeds = [42]", "seeds = " + "[" * 5000 + "]" * 5000, "deep"),
    "a long key": ("seeds = [42]", ".".join(["a"] * 60_000) + " = 1", "a line of"),
    "infinity": ("temperatures = [0]", "temperatures = [inf]", "inf is no finite number"),
    "a date": ("seeds = [42]", "seeds = 1979-05-27", "seeds: expected a list"),
    "a secret": ("[[panel]]", '[server]\nargs = ["--api-key", "hush"]\n[[panel]]', "--api-key would be written"),
    "a short secret": ("[[panel]]", '[server]\nargs = ["--api-k=hush"]\n[[panel]]', "--api-k would be written"),
    "a million cells": ("seeds = [42]", f"seeds = {list(range(2000))}", "more than 100,000 cells"),
}


@pytest.mark.parametrize("kind", SWEEPS)
def test_each_sweep_is_refused_in_one_line(specbench, tmp_path, kind):
    old, new, message = SWEEPS[kind]
    changes = {"temperatures": [1.0 + i / 100 for i in range(60)]} if kind == "a million cells" else {}
    text = sweep_text(toy(tmp_path), **changes)
    assert old in text
    (tmp_path / "s.toml").write_text(text.replace(old, new, 1))
    said = specbench.refused("plan", tmp_path / "s.toml")
    assert "s.toml" in said
    assert message in said
    assert "hush" not in said


@pytest.mark.parametrize("name", ["Qwen/Qwen3-8B", "../../../evil", "..", "a b", "ü", "a%2Fb"])
def test_any_name_of_a_target_stays_inside_the_run_folder(specbench, tmp_path, name):
    from harness.audit import certificate_file
    from harness.schema.file_name import file_name

    text = sweep_text(toy(tmp_path)).replace("[target.toy", f'[target."{name}"')
    (tmp_path / "s.toml").write_text(text)
    assert specbench("plan", tmp_path / "s.toml").code == 0
    _, made = plan.make(tmp_path / "s.toml")
    log = tmp_path / "run" / "logs" / f"{file_name(made.allocations[0].id)}.log"
    kept = certificate_file.path(tmp_path / "c", name, "ar", "none", "cpu")
    assert log.resolve().parent == tmp_path / "run" / "logs"
    assert kept.resolve().parent == tmp_path / "c"


def test_names_that_differ_have_files_that_differ():
    from harness.schema.file_name import file_name

    names = ["a/b", "a-b", "a_b", "a%2Fb", "A-B", "..", ".", "a b"]
    assert len({file_name(name) for name in names}) == len(names)


def test_a_sweep_cannot_open_the_servers_port(specbench, tmp_path):
    text = sweep_text(toy(tmp_path)).replace("[[panel]]", '[server]\nargs = ["--host", "0.0.0.0"]\n[[panel]]', 1)
    (tmp_path / "s.toml").write_text(text)
    done = specbench("plan", tmp_path / "s.toml")
    assert (done.code, "'--host' is specbench's own to set" in done.err) == (2, True)


CONFIGS = {
    "architectures a number": {"architectures": 7},
    "a size a text": {"vocab_size": "512"},
    "a size absent": {"hidden_size": None},
    "a size true": {"vocab_size": True},
    "a billion layers": {"num_hidden_layers": 10**9},
    "a nested text": {"dflash_config": "x"},
    "rope a list": {"rope_parameters": [1]},
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_each_config_of_a_target_is_refused_by_the_plan(specbench, tmp_path, kind):
    toy(tmp_path)
    (tmp_path / "target" / "config.json").write_text(json.dumps({**TARGET, **CONFIGS[kind]}))
    (tmp_path / "s.toml").write_text(sweep_text(tmp_path))
    assert "target/config.json: " in specbench.refused("plan", tmp_path / "s.toml")


def test_a_list_of_ends_is_nothing_wrong(tmp_path):
    checkpoint.check_target(model(tmp_path / "t", {**TARGET, "eos_token_id": [2, 0]}))


@pytest.mark.parametrize("how", ["index", "numbers"])
def test_a_missing_shard_of_a_target_is_seen_by_the_plan(specbench, tmp_path, how):
    target = toy(tmp_path) / "target"
    first, second = (f"model-0000{i}-of-00002.safetensors" for i in (1, 2))
    (target / "model.safetensors").rename(target / first)
    if how == "index":
        (target / checkpoint.INDEX).write_text(json.dumps({"weight_map": {"a": first, "b": second}}))
    (tmp_path / "s.toml").write_text(sweep_text(tmp_path))
    assert f"{second}: missing" in specbench.refused("plan", tmp_path / "s.toml")


def test_what_is_no_regular_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(UserError, match="not a regular file"):
            read_json(path)


@pytest.mark.parametrize(("reader", "size"), [(read_json, DOCUMENT_BYTES), (read_toml, TOML_BYTES)])
def test_a_file_that_is_too_large_is_not_read(tmp_path, reader, size):
    with (tmp_path / "f").open("wb") as handle:
        handle.truncate(size + 1)  # sparse
    with pytest.raises(UserError, match=f"{size + 1:,} bytes, more than {size:,}"):
        reader(tmp_path / "f")


def entry(run):
    return history.Entry(run=run, time="2026-01-01T00:00:00+00:00", commit="", device_name="", versions={})


def test_a_torn_last_line_does_not_take_the_next_entry_with_it(tmp_path):
    path = tmp_path / "history.jsonl"
    history.append(path, entry("a"))
    path.write_bytes(path.read_bytes()[:-5])
    history.append(path, entry("b"))
    with pytest.raises(UserError, match=r"history\.jsonl:1: "):
        history.read(path)
    path.write_text(path.read_text().split("\n", 1)[1])
    assert [e.run for e in history.read(path)] == ["b"]


@pytest.mark.parametrize("change", [{"points": "x"}, {"versions": [1]}, {"noise": "a"}, {"time": "soon"}, {"run": 1}])
def test_a_history_line_of_another_type_is_named(specbench, tmp_path, change):
    good = json.loads(json.dumps(vars(entry("a"))))
    (tmp_path / "h.jsonl").write_text(json.dumps({**good, **change}) + "\n")
    assert "h.jsonl:1: " in specbench.refused("dashboard", "--history", tmp_path / "h.jsonl")


@pytest.mark.parametrize("text", ["{", "[]", '{"run": 1}', '{"run": null}', '{"sun": ""}'])
def test_a_baseline_that_is_none_is_named(specbench, tmp_path, text):
    (tmp_path / "b.json").write_text(text)
    assert "b.json: " in specbench.refused("baseline", "show", "--file", tmp_path / "b.json")


@pytest.mark.parametrize("text", ["{", "[]", '{"allocations": [{}]}', '{"name": "x", "allocations": [null]}'])
def test_a_plan_that_is_none_is_named(specbench, tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    assert "plan.json: " in specbench.refused("status", tmp_path)


# what reads JSON of our own making: an environment variable, a cache, a child's output, a chart
OWN = {"sglang_specbench/launch.py", "sglang_specbench/digest.py", "sglang_specbench/serving/preflight.py",
       "harness/commands/plan.py", "plots/dashboard/page.py"}  # fmt: skip
AROUND = re.compile(r"\bjson\.loads?\(|\btomllib\.|\bpickle\.|\bpd\.read_|\bnp\.load\b|\bpq\.read_table")
LIBRARIES = re.compile(r"\b(torch\.load|load_file|safe_open|from_pretrained|ParquetFile|read_metadata|gzip\.open)\(")


def test_nothing_reads_around_the_door():
    """Of a library that reads a file itself, every call stands in a file that wraps it in `reading`."""
    root = Path(__file__).resolve().parents[2]
    paths = [p for name in ("sglang_specbench", "harness", "drafters", "plots") for p in (root / name).rglob("*.py")]
    text = {str(p.relative_to(root)): p.read_text() for p in paths if "mini" not in p.parts}  # mini makes its own files
    door = "sglang_specbench/foreign_file.py"
    assert {name for name, source in text.items() if AROUND.search(source)} - {door} == OWN
    assert {name for name, source in text.items() if LIBRARIES.search(source) and "reading(" not in source} <= {
        "drafters/reference/target.py"  # its caller does
    }

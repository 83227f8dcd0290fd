"""Every form of a set gives the same turns; what must not be used is refused, and said."""

import gzip
import json
from string import Template

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.prompts import load as prompts
from harness.prompts.manifest import known, manifest
from harness.prompts.prompt_set import PLACEHOLDER, turns_digest
from harness.prompts.row import make_prompt
from sglang_specbench.errors import UserError
from tests.harness.made import cell

SHIPPED = ("gsm8k", "math500", "humaneval", "mbpp", "mt-bench", "self-instruct")
STAND_INS = ("speed-mini-qualitative", "speed-mini-throughput-1k", "speed-mini-throughput-2k")


UNPINNED = ("alpaca", "speed-qualitative", "speed-throughput-1k", "speed-throughput-2k")  # no copy at hand


@pytest.fixture(autouse=True)
def no_cache(monkeypatch, tmp_path):
    """The tests see the package's own sets, not what this user has fetched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write(folder, name, rows):
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_sets_are_whole_and_word_for_word_the_pinned_ones(name):
    found = prompts.load(name)
    assert len(found.prompts) == found.manifest.rows
    assert found.digest == found.manifest.sha256
    assert not any("differs" in note for note in found.report.notes)


@pytest.mark.parametrize("name", STAND_INS)
def test_stand_ins_say_so(name):
    found = prompts.load(name)
    assert "(synthetic)" in found.manifest.title
    assert any("stand-in" in note for note in found.report.notes)


def test_the_repeat_of_mbpp_is_reported_and_kept():
    found = prompts.load("mbpp")
    assert found.report.notes == ("2 of 257 rows repeat another prompt word for word, the first 'mbpp/71'",)


@pytest.mark.parametrize(
    ("name", "column"), [("gsm8k", "question"), ("math500", "problem"), ("humaneval", "prompt"), ("mbpp", "prompt")]
)
def test_raw_rows_of_the_hub_get_the_very_same_turns(tmp_path, name, column):
    """Take the wording off the shipped text, as the hub has it, and let the loader put it on again."""
    shipped, wording = prompts.load(name), manifest(name).wording
    before, after = Template(wording.template).substitute({column: "\0"}).split("\0")
    raw = [{column: p.turns[0][len(before) : len(p.turns[0]) - len(after)]} for p in shipped.prompts]
    assert all(p.turns[0] == before + row[column] + after for p, row in zip(shipped.prompts, raw, strict=True))
    write(tmp_path, name, raw)
    assert prompts.load(name, [tmp_path]).digest == shipped.digest


def test_two_templates_where_a_field_may_be_empty():
    wanted = manifest("livecodebench")
    with_code = make_prompt(wanted, 0, {"question_content": "Q $x", "starter_code": "def f():"}, "x").turns[0]
    without = make_prompt(wanted, 0, {"question_content": "Q $x", "starter_code": ""}, "x").turns[0]
    assert "### Question:\nQ $x\n\n### Format: Use the following code structure:\n```python\ndef f():\n```" in with_code
    assert "Write your code in the following format:\n```python\n# YOUR CODE HERE\n```" in without


def forms(rows):
    turns = [{"turns": list(p.turns)} for p in rows]
    messages = [{"messages": [{"role": "user", "content": t} for t in p.turns]} for p in rows]
    return {"DeepSpec": turns, "NeMo-Skills": messages}


@pytest.mark.parametrize("form", ["DeepSpec", "NeMo-Skills"])
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_every_form_and_file_type_gives_the_same_turns(tmp_path, form, suffix):
    shipped = prompts.load("mt-bench")
    rows = forms(shipped.prompts)[form]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path = tmp_path / f"mt-bench{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    found = prompts.load("mt-bench", [tmp_path])
    assert found.digest == shipped.digest
    assert str(path) in found.report.source
    assert found.prompts[3].id == "3"  # a copy without ids is numbered


def test_text_that_differs_is_used_but_noted_and_has_another_version(tmp_path):
    """DeepSpec's MT-Bench has one other word than FastChat's."""
    shipped = prompts.load("mt-bench")
    rows = forms(shipped.prompts)["DeepSpec"]
    rows[40]["turns"][0] = rows[40]["turns"][0].replace("returns", "reprompt", 1)
    write(tmp_path, "mt-bench", rows)
    found = prompts.load("mt-bench", [tmp_path])
    assert any("differs from the pinned one" in note for note in found.report.notes)
    assert found.version(found.take()) != shipped.version(shipped.take())


def speed(count=880, **first):
    categories = manifest("speed-qualitative").categories
    rows = [
        {"question_id": f"{i:032x}", "category": categories[i // 80], "turns": [f"prompt {i}"], "source": "s"}
        for i in range(count)
    ]
    return [{**rows[0], **first}, *rows[1:]]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (speed(879), "879 rows, not 880"),
        (speed(turns=[PLACEHOLDER]), "1 of 880 rows are placeholders, not prompts, the first '00000000"),
        (speed(turns=[PLACEHOLDER + "\n\n{question}"]), "1 of 880 rows are placeholders"),
        (speed(turns=["a", PLACEHOLDER]), "1 of 880 rows are placeholders"),
        (speed(turns=[" "]), "1 of 880 rows have an empty turn"),
        (speed(turns=[]), "1 of 880 rows have an empty turn"),
        (speed(question_id=f"{1:032x}"), "2 of 880 rows share an id"),
        (speed(category="chemistry"), "1 of 880 rows have a category other than coding, "),
    ],
)
def test_what_must_not_be_used_is_refused_with_its_reason(tmp_path, rows, reason):
    write(tmp_path, "speed-qualitative", rows)
    with pytest.raises(prompts.MissingSet) as caught:
        prompts.load("speed-qualitative", [tmp_path])
    assert reason in str(caught.value)
    assert "prepare_data.py" in str(caught.value)
    assert reason in " ".join(prompts.find("speed-qualitative", [tmp_path]).report.refusals)


def test_the_real_set_in_the_layout_of_model_optimizer(tmp_path):
    folder = tmp_path / "speed" / "qualitative"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(speed()), folder / "test.parquet")
    found = prompts.load("speed-qualitative", [tmp_path])
    assert found.prompts[0].id == f"{0:032x}"
    assert {p.category for p in found.take(11)} == set(found.manifest.categories)


def test_subsets_go_round_the_categories_and_are_nested():
    found = prompts.load("speed-mini-qualitative")
    assert [p.category for p in found.take(12)][:11] == list(dict.fromkeys(p.category for p in found.prompts))
    assert found.take(20)[:7] == found.take(7)
    assert sorted(p.id for p in found.take(44)) == sorted(p.id for p in found.take())
    assert [p.id for p in prompts.load("gsm8k").take(3)] == ["gsm8k/test/0", "gsm8k/test/1", "gsm8k/test/2"]


def test_a_tier_is_its_own_rows():
    found = prompts.load("speed-mini-throughput-1k")
    assert {p.category for p in found.take(tier="mixed")} == {"mixed"}
    with pytest.raises(UserError, match=r"tiers: no tier 'mixd' in the set .did you mean 'mixed'"):
        found.take(tier="mixd")
    with pytest.raises(UserError, match=r"s\.toml: prompts: 9, but tier 'mixed' has 8 .ask for fewer"):
        found.take(9, "mixed", "s.toml")


def test_a_missing_set_names_its_command():
    with pytest.raises(prompts.MissingSet, match="specbench data fetch alpaca --accept-licence"):
        prompts.load("alpaca")
    with pytest.raises(UserError, match="did you mean 'gsm8k'"):
        prompts.load("gsm8")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"turns": ["a"]}\n{"turns"', "mt-bench.jsonl:2: not JSON"),
        (b"[1]\n", "mt-bench.jsonl:1: expected an object, got list"),
        (b'{"question": "a"}\n', "row 0: no field 'prompt'"),
        (b"\xff\xfe", "mt-bench.jsonl:1: not UTF-8: byte 0 is 0xff"),
    ],
)
def test_a_broken_file_is_named(tmp_path, data, message):
    (tmp_path / "mt-bench.jsonl").write_bytes(data)
    with pytest.raises(UserError) as caught:
        prompts.load("mt-bench", [tmp_path])
    assert message in str(caught.value)


def test_a_truncated_gzip_is_named(tmp_path):
    data = gzip.compress(b'{"turns": ["a"]}\n' * 80)
    (tmp_path / "mt-bench.jsonl.gz").write_bytes(data[:-9])
    with pytest.raises(UserError, match="cannot be read"):
        prompts.load("mt-bench", [tmp_path])


def test_a_cell_gets_the_rows_that_it_was_planned_with_or_none(tmp_path):
    found = prompts.load("mt-bench")
    planned = cell(prompt_set="mt-bench", prompts=5, prompt_version=found.version(found.take(5)))
    assert prompts.for_cell(planned) == found.take(5)
    rows = forms(found.prompts)["DeepSpec"]
    rows[0]["turns"][0] += "!"
    write(tmp_path, "mt-bench", rows)
    with pytest.raises(prompts.MissingSet, match="plan again"):
        prompts.for_cell(planned, [tmp_path])


def test_a_set_of_ones_own_needs_a_manifest_beside_it(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\ntitle = "Mine"\nversion = 1\nlicence = "own"\nmax_new_tokens = 9\n'
        '[wording]\ntemplate = "<${q}>"\n'
    )
    write(tmp_path, "mine", [{"q": "a"}, {"q": "b"}])
    assert [p.turns for p in prompts.load("mine", [tmp_path]).prompts] == [("<a>",), ("<b>",)]


@pytest.mark.parametrize("name", known())
def test_every_manifest_says_what_it_must(name):
    wanted = manifest(name)
    assert wanted.licence
    assert wanted.how_to_add
    assert wanted.max_new_tokens
    source = wanted.source
    assert source.hub or source.url or wanted.synthetic or name == "mini"
    assert wanted.sha256 or name in UNPINNED


def test_the_digest_is_of_the_text_alone():
    one = prompts.load("mt-bench").prompts
    assert turns_digest(one) == turns_digest([type(p)(id="x", turns=p.turns) for p in one])
    assert turns_digest(one) != turns_digest(one[::-1])
